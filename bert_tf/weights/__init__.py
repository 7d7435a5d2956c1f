"""Model directories: HuggingFace's folder format in and out, other libraries' weights in."""
