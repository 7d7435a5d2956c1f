"""What a task is: its declaration, protocols, predictions and card."""
