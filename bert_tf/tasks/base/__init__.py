"""The base of tasks: declarations, protocols, predictions and cards."""
