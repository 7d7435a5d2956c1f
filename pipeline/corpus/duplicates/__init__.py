"""Documents and lines that occur again."""
