"""What all packages use: errors, console, atomic files, the processor."""
