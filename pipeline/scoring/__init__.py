"""Scoring: tables in, the same rows with a model's predictions out."""
