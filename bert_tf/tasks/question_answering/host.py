"""Questions with windows of their contexts, their targets, and the host of the task, in NumPy.

For training data, for evaluation and for engines without TensorFlow. A question is read with each
window of its context (google-research/bert `run_squad.py`, `doc_stride`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bert_tf.base.arrays import flat_ranges, offsets_of
from bert_tf.base.errors import UsageError
from bert_tf.data.rows.encoded_rows import EncodedRows
from bert_tf.data.rows.windows import (
    Windows,
    answer_tokens,
    cut_windows,
    window_rows,
    window_targets,
)
from bert_tf.data.text.host_wordpiece import TokenizedTexts, Tokenizer
from bert_tf.serving.signatures import (
    AnswerLengths,
    AnswerRules,
)
from bert_tf.tasks.base.declaration import ServedTaskDeclaration
from bert_tf.tasks.base.explained import Outputs, PlacedRow, Target
from bert_tf.tasks.base.host_task import HostRows, HostTask
from bert_tf.tasks.question_answering.options import QUESTION_ANSWERING
from bert_tf.tasks.question_answering.spans import (
    choose_answers,
    null_scores,
    question_spans,
    window_spans,
)

if TYPE_CHECKING:
    from bert_tf.tasks.question_answering.rows import Questions

_LEAST_ROOM = 8


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuestionRows:
    """Questions over contexts, ready for a model.

    Attributes:
        rows: one per window.
        windows: the part of the context that each row has.
        question_lengths: int64 [questions], tokens of each question.
        texts: each context once.
        contexts: tokens of these, with their characters.
        context_index: int64 [questions], the context of each question.
    """

    rows: EncodedRows
    windows: Windows
    question_lengths: np.ndarray
    texts: Sequence[str]
    contexts: TokenizedTexts
    context_index: np.ndarray

    @property
    def context_begins(self) -> np.ndarray:
        """Return where in its row each window's part of the context begins, int64 [windows]."""
        # [CLS] is before the question, [SEP] after it.
        return self.question_lengths[self.windows.question] + 2


def encode_questions(
    tokenizer: Tokenizer,
    questions: Sequence[str],
    contexts: Sequence[str],
    context_index: np.ndarray,
    lengths: AnswerLengths,
) -> QuestionRows:
    """Tokenize questions and contexts, each once, and cut the contexts into windows.

    Args:
        tokenizer: that of the model.
        questions: texts [questions].
        contexts: each context once.
        context_index: int [questions], the context of each question.
        lengths: in tokens; longer questions are cut.
    """
    whole = tokenizer.tokenize_with_characters(questions)
    question_tokens = _first_tokens(whole, lengths.max_query_length)
    read = tokenizer.tokenize_with_characters(contexts)
    context_index = np.asarray(context_index, np.int64)
    capacities = lengths.max_seq_length - 3 - question_tokens.lengths
    windows = cut_windows(read.lengths[context_index], capacities, stride=lengths.doc_stride)
    rows = window_rows(
        windows,
        question_tokens,
        read,
        context_index,
        cls_id=tokenizer.cls_id,
        sep_id=tokenizer.sep_id,
    )
    # The tokens that a question loses are counted once, at its first window.
    lost_tokens = np.zeros(len(rows), np.int64)
    first_windows = np.searchsorted(windows.question, np.arange(len(question_tokens.lengths)))
    lost_tokens[first_windows] = whole.lengths - question_tokens.lengths
    return QuestionRows(
        rows=dataclasses.replace(rows, lost_tokens=lost_tokens),
        windows=windows,
        question_lengths=question_tokens.lengths,
        texts=contexts,
        contexts=read,
        context_index=context_index,
    )


def check_question_lengths(max_seq_length: int, max_query_length: int) -> None:
    """Reject rows that leave less than eight tokens for the context beside a long question.

    Raises:
        UsageError: the lengths leave less.
    """
    least = max_query_length + 3 + _LEAST_ROOM
    if max_seq_length < least:
        raise UsageError(
            f"max_seq_length {max_seq_length} leaves no room for a context beside a question of "
            f"max_query_length {max_query_length}; use at least {least} or shorter questions"
        )


def _first_tokens(tokens: TokenizedTexts, most: int) -> TokenizedTexts:
    """Cut each text to its first `most` tokens."""
    lengths = np.minimum(tokens.lengths, most)
    kept = flat_ranges(tokens.offsets[:-1], lengths)
    return TokenizedTexts(
        ids=tokens.ids[kept],
        offsets=offsets_of(lengths),
        first_characters=tokens.first_characters[kept],
        last_characters=tokens.last_characters[kept],
    )


def question_targets(
    source: Questions, encoded: QuestionRows
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the tokens of the first answer of each question.

    Args:
        source: the questions.
        encoded: the same, encoded.

    Returns:
        starts, ends: the answer's tokens in each row, int32 [windows], 0 ([CLS]) if a window does
            not hold the whole answer.
        is_located: bool [questions], whether the tokens, or their absence, are known; never in
            files without positions.
    """
    firsts, lasts = answer_tokens(
        encoded.contexts, encoded.context_index, *_answer_characters(source)
    )
    has_answer = np.array([bool(listed) for listed in source.answers])
    is_located = ~has_answer | (firsts >= 0)
    if has_answer.any() and not is_located[has_answer].any():
        is_located[:] = False
    starts, ends = window_targets(encoded.windows, encoded.question_lengths, firsts, lasts)
    return starts, ends, is_located


def located_questions(source: Questions, is_located: np.ndarray) -> Questions:
    """Reject questions whose answer has no token, such as a lone accent.

    Args:
        source: the questions.
        is_located: bool [questions], as `question_targets` returns it.

    Raises:
        RowsRejected: no question is left.
    """
    has_token = is_located | np.array([not listed for listed in source.answers])
    return source.rejecting(
        {
            row: (
                "answer has no tokens",
                f"question {source.ids[row]!r}: {source.answers[row][0].text!r}",
            )
            for row in np.flatnonzero(~has_token).tolist()
        }
    )


def _answer_characters(source: Questions) -> tuple[np.ndarray, np.ndarray]:
    """Return begin and end of the first answer of each question, int64 [questions] each.

    Both are 0 if there is no answer, or if it is elsewhere than its start says.
    """
    places = np.zeros((2, len(source)), np.int64)
    for index, (listed, context) in enumerate(
        zip(source.answers, source.context_index, strict=True)
    ):
        if listed:
            text, start = listed[0]
            if start >= 0 and source.contexts[context].startswith(text, start):
                places[:, index] = start, start + len(text)
    starts, ends = places
    return starts, ends


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuestionAnsweringHost(HostTask, AnswerLengths):
    """The task around its graph; see `QuestionAnsweringTask` for the fields."""

    declaration: ClassVar[ServedTaskDeclaration] = QUESTION_ANSWERING

    may_be_unanswerable: bool
    null_score_diff_threshold: float
    sentence_margin: float = 0.0

    @property
    def rules(self) -> AnswerRules:
        return AnswerRules(
            may_be_unanswerable=self.may_be_unanswerable,
            null_threshold=self.null_score_diff_threshold,
            sentence_margin=self.sentence_margin,
        )

    def targets(
        self, placed: PlacedRow, outputs: Outputs, predicted: Mapping[str, Any]
    ) -> list[Target]:
        # Logits of the window where both are highest; without an answer, those of [CLS].
        shape = outputs["start_logits"].shape
        words = placed.words_at(shape)
        best = (-np.inf, 0, 0, 0)
        for window in range(shape[0]):
            first, last = 0, 0
            if predicted["predicted_start"] >= 0:
                inside = _answer_places(placed, words[window], predicted)
                if not inside:
                    continue
                first, last = inside[0], inside[-1]
            score = outputs["start_logits"][window, first] + outputs["end_logits"][window, last]
            best = max(best, (float(score), window, first, last))
        _, window, first, last = best
        weights = {name: np.zeros(shape, np.float32) for name in ("start_logits", "end_logits")}
        weights["start_logits"][window, first] = 1.0
        weights["end_logits"][window, last] = 1.0
        return [Target(name=str(predicted["predicted_answer"]), weights=weights)]

    def encode(self, tokenizer: Tokenizer, columns: Mapping[str, Sequence[Any]]) -> HostRows:
        numbers: dict[str, int] = {}  # a context of several questions is tokenized once
        index = [numbers.setdefault(text, len(numbers)) for text in columns["context"]]
        questions = encode_questions(
            tokenizer, columns["question"], list(numbers), np.array(index, np.int64), self
        )
        return HostRows(sequences=questions.rows, details=questions)

    def reduce(
        self, rows: HostRows, chosen: np.ndarray, outputs: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Return the best spans of each window (`window_spans`), and the score of none as `cls`."""
        start, end = outputs["start_logits"], outputs["end_logits"]
        first, last, score = window_spans(
            start,
            end,
            rows.details.context_begins[chosen],
            rows.details.windows.length[chosen],
            max_answer_length=self.max_answer_length,
            n_best=self.n_best_size,
        )
        return {"first": first, "last": last, "score": score, "cls": start[:, 0] + end[:, 0]}

    def predict(
        self, rows: HostRows, columns: Mapping[str, Sequence[Any]], reduced: dict[str, np.ndarray]
    ) -> dict[str, Any]:
        encoded: QuestionRows = rows.details
        windows = encoded.windows
        candidates = question_spans(
            windows, reduced["first"], reduced["last"], reduced["score"], n_best=self.n_best_size
        )
        null = null_scores(windows, reduced["cls"], len(encoded.context_index))
        return choose_answers(
            candidates, null, encoded.texts, encoded.contexts, encoded.context_index, self.rules
        )


def _answer_places(placed: PlacedRow, words: np.ndarray, predicted: Mapping[str, Any]) -> list[int]:
    """Return the places of a window whose words are in the predicted answer."""
    begin, end = int(predicted["predicted_start"]), int(predicted["predicted_end"])
    return [
        place
        for place, number in enumerate(words.tolist())
        if number >= 0
        and placed.words[number].input == "context"
        and placed.words[number].begin < end
        and placed.words[number].end > begin
    ]
