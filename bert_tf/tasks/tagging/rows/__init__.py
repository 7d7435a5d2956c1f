"""Rows of tagged text: files to texts with tags, and texts to words and model input."""
