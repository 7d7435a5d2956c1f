"""Count words in blocks of documents, and learn a WordPiece vocabulary from the counts."""
