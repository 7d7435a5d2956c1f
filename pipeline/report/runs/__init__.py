"""Pretraining and fine-tuning runs as one page: curves, data and evaluations, side by side."""
