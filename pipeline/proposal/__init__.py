"""Settings that suit labeled rows or a corpus, and the config with them."""
