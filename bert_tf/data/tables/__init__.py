"""Files of rows as people have them: text files, CSV, TSV, JSON lines, Parquet, rejects."""
