"""Keras models: the encoder, pretraining, and one file a task."""
