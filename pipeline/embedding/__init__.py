"""Vectors of the texts of tables, and the files that they are written to."""
