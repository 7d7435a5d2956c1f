"""Files of rows in the formats that people have: text files, cells, columns, rejects."""
