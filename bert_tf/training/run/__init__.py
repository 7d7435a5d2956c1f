"""The run directory: checkpoints, state, metrics and log lines."""
