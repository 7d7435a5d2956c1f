"""Keras models: the encoder, pretraining, and one file per task."""
