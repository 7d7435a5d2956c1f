"""What a model is fine-tuned for: a file a task with data in, head, loss, metrics, predictions."""
