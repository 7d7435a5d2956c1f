"""How likely a masked language model finds texts."""
