"""Raw text to clean paragraphs."""
