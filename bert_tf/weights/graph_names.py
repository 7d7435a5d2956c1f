"""What ONNX graphs call their inputs and outputs, and how large they may be; imports no ONNX."""

MOST_BYTES = (1 << 31) - (1 << 20)  # protobuf's limit for a message, and what is not weights

WORD_IDS, MASK, TYPE_IDS = "input_word_ids", "input_mask", "input_type_ids"
POSITIONS = "masked_lm_positions"
OUTPUTS = (
    "logits", "start_logits", "end_logits", "sequence_output", "pooled_output", "embedding"
)  # fmt: skip
