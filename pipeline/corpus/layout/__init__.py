"""The layout of plain text: the meaning of its lines and blank lines."""
