"""From a file of labeled rows to a config for it: what it holds, and which settings suit it."""
