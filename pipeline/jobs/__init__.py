"""A file per command: wires the transforms or the trainer and writes the manifest."""
