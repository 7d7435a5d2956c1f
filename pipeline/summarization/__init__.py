"""Extractive summaries: the sentences of a document that stand for it."""
