"""Names of what an exported model is called by; engines read them without TensorFlow."""

SERVING = "serving_default"
BATCHED = "batched"
BATCH_TOKENS = "batch_tokens"
DEFAULT_BATCH_TOKENS = 2048
