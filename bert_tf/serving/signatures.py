"""Names and rules that exported graphs and the code around them share, without TensorFlow."""

from __future__ import annotations

import dataclasses

SERVING = "serving_default"
BATCHED = "batched"
PAIRS = "pairs"
IDS = "ids"
IDS_INPUTS = ("input_word_ids", "input_mask", "input_type_ids")
# Outputs that describe the model, not rows, such as names of labels
NOT_OF_ROWS = ("labels",)
BATCH_TOKENS = "batch_tokens"
DEFAULT_BATCH_TOKENS = 2048
# Output: number of tokens of each row that do not fit into its sequence, int32 [rows]
LOST_TOKENS = "lost_tokens"
# Output of tasks that predict nothing for rows longer than a sequence: number of tokens of each row
# that do not fit, int32 [rows]
EXCESS_TOKENS = "excess_tokens"
# Output: number of masks of each row beyond MOST_MASKS, int32 [rows]
LOST_MASKS = "lost_masks"
# Column of predictions, not of a graph: number of words without a token in each row of words
WORDS_WITHOUT_TOKENS = "words_without_tokens"
# Masks of a text that are predicted, each from a sequence of its own. Pretraining masks 15% of a
# sequence, 77 of 512 tokens; without a limit, a text of 1 MB can cost as much as 300 such texts.
MOST_MASKS = 100
# UTF-8 bytes of the texts of all candidates of a row; if they take more, candidates have no text.
# A text of 512 tokens (2.5 kB) with 77 masks and 5 candidates per mask stays below it.
MOST_CANDIDATE_BYTES = 1 << 20
# Output of tasks with a sequence per row: number of its tokens, int32 [rows]
ROW_TOKENS = "row_tokens"
MANY_CUT = 0.05  # share of cut rows from which results may suffer
# Files with a graph from token ids to scores.
ONNX_FILE = "model.onnx"
OPENVINO_FILE = "openvino_model.xml"
# The same with products of 8-bit integers.
ONNX_INT8_FILE = "model_int8.onnx"
OPENVINO_INT8_FILE = "openvino_model_int8.xml"
# Outputs of models that give vectors.
EMBEDDING = "embedding"
PAIR_EMBEDDING = "text_pair_embedding"
PROBABILITY_DIGITS = 6  # decimals
# Logit of padding, and of a choice that a row does not have.
FAR_BELOW = -1e9
# Null odds of a context without a token, where there is no span to compare with.
NO_SPAN_ODDS = 1e9
# The end of a sentence inside a text. Python's `re` and RE2 read the pattern alike, because it has
# no lookaround, `\w` or `\s`. A period ends a sentence only after three characters that are
# neither upper case nor dots, which leaves out initials and titles (J. R., U.S., St., Mrs.), and
# only if neither lower case nor a digit follows (approx. 5).
SENTENCE_END = (
    r"(?:[^ \t\r\nA-Z.]{3}\.|[!?…])"  # the mark
    r"[\"')\]”’»]*[ \t\r\n]+[^ \t\r\na-z0-9]"  # closing marks, a blank, a beginning
    r"|[。！？]|\n[ \t\r]*\n"  # marks without a blank after them; an empty line
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnswerRules:
    """Rules that choose an answer from spans of a context and the null score.

    Attributes:
        may_be_unanswerable: whether the model may leave a question without an answer.
        null_threshold: there is no answer if the null odds, the null score minus the best span's
            score, exceed this.
        sentence_margin: a span that runs over the end of a sentence yields to the best span within
            a sentence whose score is lower by at most this; 0 for never.
    """

    may_be_unanswerable: bool
    null_threshold: float
    sentence_margin: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnswerLengths:
    """Limits in tokens, and the number of spans per answer.

    See the task's `QuestionAnsweringConfig`.

    Attributes:
        max_seq_length: tokens of a window, question and special tokens included.
        doc_stride: tokens from the start of a window to the start of the next.
        max_query_length: most tokens of a question.
        max_answer_length: most tokens of an answer.
        n_best_size: number of spans per question and window.
    """

    max_seq_length: int
    doc_stride: int
    max_query_length: int
    max_answer_length: int
    n_best_size: int
