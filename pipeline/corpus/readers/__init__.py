"""A reader a format: files to raw blocks."""
