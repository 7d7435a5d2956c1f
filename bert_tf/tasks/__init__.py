"""What a model is fine-tuned for: a folder per task, and what all of them share."""
