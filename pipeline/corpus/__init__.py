"""From files of any kept format to blocks of documents, cleaned and split into sentences."""
