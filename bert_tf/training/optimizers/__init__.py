"""Optimizers of the training step, and the average of weights."""
