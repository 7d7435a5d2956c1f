"""Scored spans to answers and their metrics, in NumPy."""
