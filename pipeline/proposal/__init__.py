"""From labeled rows or a corpus to a config: what they hold, and which settings suit them."""
