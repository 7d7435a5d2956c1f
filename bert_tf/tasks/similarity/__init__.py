"""Vectors of texts, trained so that those of similar texts are near each other."""
