"""What `export` writes for other libraries to load; a file per format."""
