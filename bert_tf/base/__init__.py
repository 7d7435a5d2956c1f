"""Base of all packages: errors, console, atomic files, the processor."""
