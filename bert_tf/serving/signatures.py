"""Names of what an exported model is called by; engines read them without TensorFlow."""

SERVING = "serving_default"
BATCHED = "batched"
IDS = "ids"
IDS_INPUTS = ("input_word_ids", "input_mask", "input_type_ids")
# Outputs that are of the model, not of the rows; such as names of labels, which the task has too.
NOT_OF_ROWS = ("labels",)
BATCH_TOKENS = "batch_tokens"
DEFAULT_BATCH_TOKENS = 2048
# Output that counts the tokens of each row that its sequence is too short for: int32 [rows].
LOST_TOKENS = "lost_tokens"
# Output that counts the tokens of each row, where a row is one sequence: int32 [rows].
ROW_TOKENS = "row_tokens"
MANY_CUT = 0.05  # of the rows: then their results may suffer
# Files with a graph from token ids to scores.
ONNX_FILE, OPENVINO_FILE = "model.onnx", "openvino_model.xml"
# The same with products of 8-bit integers.
ONNX_INT8_FILE, OPENVINO_INT8_FILE = "model_int8.onnx", "openvino_model_int8.xml"
