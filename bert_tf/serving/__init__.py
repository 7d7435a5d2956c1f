"""Models as TensorFlow modules that take texts: the base of all tasks' modules."""
