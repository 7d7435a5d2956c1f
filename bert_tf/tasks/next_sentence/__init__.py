"""Whether a text follows another, by the next-sentence head."""
