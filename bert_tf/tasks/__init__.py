"""Tasks to fine-tune for: a folder each, and the base they share."""
