"""Texts to vectors: how a model's vectors are made, and the engine that makes them."""
