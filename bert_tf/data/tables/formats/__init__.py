"""Readers of the formats of tables: they find rows, and reject broken ones."""
