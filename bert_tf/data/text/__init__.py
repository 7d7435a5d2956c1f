"""Text to WordPiece ids: vocabulary files, normalization, the tokenizer."""
