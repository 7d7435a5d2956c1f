"""Rows of texts to model input and back: encoded rows, batches, questions, windows, answers."""
