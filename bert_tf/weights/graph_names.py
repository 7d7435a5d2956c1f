"""Names of inputs and outputs of ONNX graphs, and their largest size. Does not import ONNX."""

# Most bytes of weights: protobuf's limit for a message, less 1 MiB for everything else.
MOST_BYTES = (1 << 31) - (1 << 20)

WORD_IDS = "input_word_ids"
MASK = "input_mask"
TYPE_IDS = "input_type_ids"
POSITIONS = "masked_lm_positions"
OUTPUTS = (
    "logits",
    "start_logits",
    "end_logits",
    "sequence_output",
    "pooled_output",
    "embedding",
)
