"""A model tried by hand: what one types on a page of this machine, and what it predicts."""
