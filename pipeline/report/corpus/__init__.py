"""What is in a corpus, from a part of it that fits into memory."""
