"""Models for others to load: text-in SavedModels, HuggingFace folders, model cards."""
