"""Base of the tasks whose rows are a text or a pair of texts with a label."""
