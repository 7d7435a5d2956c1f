"""What a model makes of a text: its attention, its nearest words, its predictions."""
