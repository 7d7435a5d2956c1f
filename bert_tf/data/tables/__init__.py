"""Files of rows as people have them, whatever their format: text files, cells, columns, rejects."""
