"""A file or two per format of tables: how its rows are found, and what is wrong with them."""
