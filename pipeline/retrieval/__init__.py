"""Nearest vectors: exact search, an approximate index, and what fraction the index finds."""
