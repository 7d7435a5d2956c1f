"""Names of inputs and outputs of ONNX graphs, and their largest size. Does not import ONNX."""

# Most bytes of weights: protobuf's limit for a message, less 1 MiB for everything else.
MOST_BYTES = (1 << 31) - (1 << 20)

# Names that HuggingFace's tokenizers use, so that `session.run(None, dict(tokenizer(…)))` works.
WORD_IDS = "input_ids"
MASK = "attention_mask"
TYPE_IDS = "token_type_ids"
NAMES = {"input_word_ids": WORD_IDS, "input_mask": MASK, "input_type_ids": TYPE_IDS}
"""Names of a graph's inputs by those of batches, which graphs before 0.2 have."""
POSITIONS = "masked_lm_positions"
OUTPUTS = (
    "logits",
    "start_logits",
    "end_logits",
    "sequence_output",
    "pooled_output",
    "embedding",
)
