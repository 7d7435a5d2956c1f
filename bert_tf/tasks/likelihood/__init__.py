"""The likelihood of texts in a masked language model."""
