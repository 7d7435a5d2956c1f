"""The CPU fast path: one implementation of the encoder, of gradients and of the optimizer."""
