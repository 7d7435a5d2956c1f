"""Model directories: HuggingFace's folder format, and other libraries' weights in and out."""
