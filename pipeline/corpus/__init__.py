"""Read files of any supported format into blocks of documents, cleaned and split into sentences."""
