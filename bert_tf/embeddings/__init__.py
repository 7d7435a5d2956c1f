"""Texts to vectors: the settings of a model's vectors, and the engine that makes them."""
