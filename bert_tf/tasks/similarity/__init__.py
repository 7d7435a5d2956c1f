"""Vectors of texts, trained to be near each other for similar texts."""
