"""From files of any supported format to blocks of documents, cleaned and split into sentences."""
