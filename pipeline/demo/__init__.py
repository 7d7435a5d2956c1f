"""The demo: its data, a corpus out of documentation, its report."""
