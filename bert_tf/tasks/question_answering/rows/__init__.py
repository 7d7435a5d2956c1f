"""Files of questions to windows for a model, and where it should point in them."""
