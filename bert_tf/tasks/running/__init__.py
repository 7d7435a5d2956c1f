"""Fine-tuning and measuring the model of any task."""
