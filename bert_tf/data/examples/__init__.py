"""Documents to pretraining examples: segments, masks, features; pure functions over flat arrays."""
