"""Profile of a model's rows, by which `score` tells how far to trust predictions of new ones."""
