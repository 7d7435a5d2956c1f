"""Regression of a number on a text or a pair of texts."""
