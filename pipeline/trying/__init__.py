"""A page on this machine on which a user tries a model."""
