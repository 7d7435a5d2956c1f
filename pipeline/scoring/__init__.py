"""Tables in, the same rows with a model's predictions beside them out."""
