"""What everything stands on: errors, console, atomic files, the processor."""
