"""What a model keeps of its rows, so that `score` can say how far to trust new ones."""
