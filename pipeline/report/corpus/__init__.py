"""Pages of a corpus, from a part of it that fits into memory."""
