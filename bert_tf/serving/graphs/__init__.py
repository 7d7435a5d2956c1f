"""Graphs of tasks: from texts to predictions inside one exported function."""
