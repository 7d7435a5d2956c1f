"""Training: strategy, optimizer, schedules, step, loop, checkpoints, metrics log."""
