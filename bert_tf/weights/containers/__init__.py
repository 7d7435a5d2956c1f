"""Files of tensors that no package at hand reads."""
