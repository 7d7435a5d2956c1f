"""Paragraphs to sentences."""
