"""Questions with windows of their contexts, their targets, and the host of the task, in NumPy.

Used for training data, for evaluation, and by engines without TensorFlow. A question is read with
each window of its context (google-research/bert `run_squad.py`, `doc_stride`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bert_tf.base.arrays import flat_ranges, offsets_of
from bert_tf.base.errors import Fault, UsageError
from bert_tf.data.rows.encoded_rows import EncodedRows
from bert_tf.data.rows.windows import (
    NO_ANSWER_POSITION,
    SPECIALS_BEFORE_CONTEXT,
    Windows,
    answer_tokens,
    cut_windows,
    window_rows,
    window_targets,
)
from bert_tf.data.text.host_wordpiece import TokenizedTexts, Tokenizer
from bert_tf.data.text.vocab_file import SPECIALS_OF_PAIR
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

_LEAST_ROOM = 8  # tokens of a window for the context


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuestionRows:
    """Questions over contexts, ready for a model.

    Attributes:
        rows: a row per window.
        windows: the part of the context that each row has.
        question_lengths: int64 [questions], tokens of each question.
        texts: each context once.
        contexts: tokens of the contexts, with their characters.
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
        """Return the position in its row where each window's context begins, int64 [windows]."""
        return self.question_lengths[self.windows.question] + SPECIALS_BEFORE_CONTEXT


def encode_questions(
    tokenizer: Tokenizer,
    questions: Sequence[str],
    contexts: Sequence[str],
    context_index: np.ndarray,
    lengths: AnswerLengths,
) -> QuestionRows:
    """Tokenize questions and contexts, each once, and cut the contexts into windows.

    Args:
        tokenizer: tokenizer of the model.
        questions: texts [questions].
        contexts: each context once.
        context_index: int [questions], the context of each question.
        lengths: limits in tokens; longer questions are cut.
    """
    whole = tokenizer.tokenize_with_characters(questions)
    question_tokens = _first_tokens(whole, lengths.max_query_length)
    read = tokenizer.tokenize_with_characters(contexts)
    context_index = np.asarray(context_index, np.int64)
    capacities = lengths.max_seq_length - SPECIALS_OF_PAIR - question_tokens.lengths
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
    """Check that a row has room for the context beside the longest question.

    Raises:
        UsageError: there are fewer than eight tokens for the context.
    """
    least = max_query_length + SPECIALS_OF_PAIR + _LEAST_ROOM
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
        encoded: the same questions, encoded.

    Returns:
        starts, ends: int32 [windows], positions of the answer's first and last token in each row; 0
            ([CLS]) if the window does not hold the whole answer.
        is_located: bool [questions], whether the tokens, or the absence of an answer, are known;
            all False if no answer of the file has a usable start.
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
    faults: dict[int, Fault] = {}
    for row in np.flatnonzero(~has_token).tolist():
        first = source.answers[row][0]
        faults[row] = "answer has no tokens", f"question {source.ids[row]!r}: {first.text!r}"
    return source.rejecting(faults)


def _answer_characters(source: Questions) -> tuple[np.ndarray, np.ndarray]:
    """Return start and end of the first answer of each question, int64 [questions] each.

    Both are 0 if there is no answer, or if the answer is not at its start.
    """
    places = np.zeros((2, len(source)), np.int64)
    for row, (answers, index) in enumerate(zip(source.answers, source.context_index, strict=True)):
        if not answers:
            continue
        text, start = answers[0]
        if start >= 0 and source.contexts[index].startswith(text, start):
            places[:, row] = start, start + len(text)
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
        # The window with the highest sum of both logits; without an answer, the logits of [CLS].
        shape = outputs["start_logits"].shape
        words = placed.words_at(shape)
        best = (-np.inf, 0, 0, 0)
        for window in range(shape[0]):
            first = NO_ANSWER_POSITION
            last = NO_ANSWER_POSITION
            if predicted["predicted_start"] >= 0:
                inside = _answer_places(placed, words[window], predicted)
                if not inside:
                    continue
                first = inside[0]
                last = inside[-1]
            score = outputs["start_logits"][window, first] + outputs["end_logits"][window, last]
            best = max(best, (float(score), window, first, last))
        _, window, first, last = best
        weights = {name: np.zeros(shape, np.float32) for name in ("start_logits", "end_logits")}
        weights["start_logits"][window, first] = 1.0
        weights["end_logits"][window, last] = 1.0
        return [Target(name=str(predicted["predicted_answer"]), weights=weights)]

    def encode(self, tokenizer: Tokenizer, columns: Mapping[str, Sequence[Any]]) -> HostRows:
        numbers: dict[str, int] = {}  # by context, so that each is tokenized once
        index = [numbers.setdefault(text, len(numbers)) for text in columns["context"]]
        questions = encode_questions(
            tokenizer, columns["question"], list(numbers), np.array(index, np.int64), self
        )
        return HostRows(sequences=questions.rows, details=questions)

    def reduce(
        self, rows: HostRows, chosen: np.ndarray, outputs: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Return the best spans of each window (`window_spans`), and as `cls` that of no answer."""
        start = outputs["start_logits"]
        end = outputs["end_logits"]
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
    begin = int(predicted["predicted_start"])
    end = int(predicted["predicted_end"])
    places = []
    for place, number in enumerate(words.tolist()):
        if number < 0:
            continue
        word = placed.words[number]
        if word.input == "context" and word.begin < end and word.end > begin:
            places.append(place)
    return places
