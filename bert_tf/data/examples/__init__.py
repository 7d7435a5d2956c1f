"""Documents to pretraining examples: segments, masks, features; pure functions on flat arrays."""
