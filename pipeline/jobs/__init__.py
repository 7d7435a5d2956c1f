"""What each command runs: wires the transforms or the trainer and writes the manifest."""
