"""Vocabularies of models from other libraries."""
