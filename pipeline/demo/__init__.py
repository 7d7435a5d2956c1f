"""The demo: its data, a corpus of documentation, and its report."""
