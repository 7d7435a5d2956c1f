"""Extractive summaries: the sentences of a document that represent it."""
