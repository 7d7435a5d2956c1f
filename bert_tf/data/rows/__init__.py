"""From texts to model input and back: encoded rows, batches, windows, and answers in them."""
