"""Trackers that follow a run: TensorBoard, MLflow, Weights & Biases."""
