"""Models as TensorFlow modules that take texts: what the modules of all tasks are built from."""
