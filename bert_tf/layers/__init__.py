"""Keras layers of BERT: embeddings, attention, transformer block, heads."""
