"""BERT on TensorFlow/Keras: configuration, data contracts, model, training, tasks and export."""
