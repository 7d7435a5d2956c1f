"""Blocks of documents: as read, and as flat arrays."""
