"""Rules that decide which documents and lines of a corpus stay; a file each."""
