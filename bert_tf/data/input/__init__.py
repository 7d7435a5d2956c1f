"""Pretraining records to batches in the order of an epoch."""
