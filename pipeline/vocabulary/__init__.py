"""From blocks of documents to word counts, and from those to a WordPiece vocabulary."""
