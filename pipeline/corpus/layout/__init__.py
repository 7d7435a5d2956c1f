"""Which layout plain text has: what its documents, paragraphs and lines are."""
