"""Before a command runs: memory, quiet imports, signals."""
