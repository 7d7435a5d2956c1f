"""What the demo works on and shows: its data, a corpus out of documentation, its report."""
