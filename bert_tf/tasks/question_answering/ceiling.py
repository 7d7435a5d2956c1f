"""Ceiling of question answering: answers that no model can give.

Answers cannot be predicted if they are too long, if no window holds them whole, or if they begin
inside a token. See `bert_tf.tasks.running.ceiling`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bert_tf.data.rows.windows import answer_tokens, window_targets
from bert_tf.tasks.base.ceiling import CERTAIN, Cause
from bert_tf.tasks.question_answering.host import QuestionRows
from bert_tf.tasks.question_answering.rows import normalize_answer

if TYPE_CHECKING:
    from bert_tf.tasks.base.task_data import TaskData
    from bert_tf.tasks.question_answering.question_files import Answer
    from bert_tf.tasks.question_answering.rows import Questions
    from bert_tf.tasks.question_answering.task import QuestionAnsweringTask


def with_known_answers(data: TaskData) -> TaskData:
    """Return data with the position of an answer in each window; that of [CLS] if there is none.

    Evaluation rows may lack starts of answers. Such an answer is searched for in its context.
    """
    encoded: QuestionRows = data.details
    _, firsts, lasts = _answer_places(data.source, encoded)
    starts, ends = window_targets(encoded.windows, encoded.question_lengths, firsts, lasts)
    return dataclasses.replace(data, targets={"start_position": starts, "end_position": ends})


def gold_span_logits(data: TaskData) -> Callable[[np.ndarray], dict[str, np.ndarray]]:
    """Return a function from windows to logits that are certain of the targets.

    Args:
        data: rows with the targets of `with_known_answers`.

    Returns:
        A function from int [n] to `start_logits` and `end_logits`, float32 [n, length].
    """

    def outputs(chosen: np.ndarray) -> dict[str, np.ndarray]:
        shape = len(chosen), int(data.rows.lengths[chosen].max())
        logits_by_name = {}
        for name in ("start", "end"):
            logits = np.zeros(shape, np.float32)
            logits[np.arange(len(chosen)), data.targets[f"{name}_position"][chosen]] = CERTAIN
            logits_by_name[f"{name}_logits"] = logits
        return logits_by_name

    return outputs


class _AnswerCause(NamedTuple):
    """A cause of unpredictable answers; see `Cause` for the texts.

    Attributes:
        rows: bool [questions], True where it applies.
    """

    rows: np.ndarray
    text: str
    remedy: str
    is_setting: bool = False


def answer_causes(
    task: QuestionAnsweringTask, data: TaskData, missed: np.ndarray
) -> Iterator[Cause]:
    """Yield the causes why answers of missed questions cannot be predicted.

    Args:
        task: has the lengths that limit answers.
        data: the questions.
        missed: bool [questions], True for those that a perfect model answers wrong.
    """
    source: Questions = data.source
    encoded: QuestionRows = data.details
    places, firsts, lasts = _answer_places(source, encoded)
    has_answer = np.array([bool(listed) for listed in source.answers], bool)
    lengths = np.where(firsts >= 0, lasts - firsts + 1, 0)
    needed = int(lengths[missed].max(initial=0))
    rest = missed & has_answer
    causes = (
        _AnswerCause(
            rows=places[:, 0] < 0,
            text="is not in the context",
            remedy="correct the answers, which have to be parts of their context, or name the "
            "columns",
        ),
        _AnswerCause(
            rows=firsts < 0,
            text="holds no word that the tokenizer keeps",
            remedy="correct the answers",
        ),
        _AnswerCause(
            rows=lengths > task.max_answer_length,
            text=f"is longer than --max-answer-length {task.max_answer_length}",
            remedy=f"raise --max-answer-length to {needed}",
            is_setting=True,
        ),
        _AnswerCause(
            rows=~_are_in_a_window(encoded, firsts, lasts),
            text=f"is not whole in any window of --max-seq-length {task.max_seq_length} and "
            f"--doc-stride {task.doc_stride}",
            remedy="lower --doc-stride, or raise --max-seq-length",
            is_setting=True,
        ),
        _AnswerCause(
            rows=_is_cut(places, firsts, lasts, encoded),
            text="is not made of whole tokens",
            remedy="correct the answers' starts, or start from a model whose vocabulary splits "
            "them there",
        ),
        _AnswerCause(
            rows=_is_without_words(source),
            text="consists of articles and punctuation, which the metrics leave out",
            remedy="correct the answers",
        ),
    )
    for cause in causes:
        yield Cause(
            count=int((rest & cause.rows).sum()),
            total=int(has_answer.sum()),
            text=cause.text,
            remedy=cause.remedy,
            noun="answer",
            is_setting=cause.is_setting,
        )
        # An answer only counts for its first cause, whose remedy has to come first.
        rest = rest & ~cause.rows
    if not task.may_be_unanswerable:
        yield Cause.of_rows(
            missed & ~has_answer,
            "has no answer, but the model always answers",
            "leave these rows out, or fine-tune on rows some of which have no answer",
        )


def _are_in_a_window(encoded: QuestionRows, firsts: np.ndarray, lasts: np.ndarray) -> np.ndarray:
    """Return for each question whether a window holds its whole answer, bool."""
    starts, _ = window_targets(encoded.windows, encoded.question_lengths, firsts, lasts)
    are_whole = np.zeros(len(firsts), bool)
    # A window whose target is [CLS], at 0, does not hold the answer.
    are_whole[encoded.windows.question[starts > 0]] = True
    return are_whole


def _is_without_words(source: Questions) -> np.ndarray:
    """Return for each question whether normalization leaves nothing of its answers, bool."""
    has_words = [any(map(normalize_answer, texts)) for texts in source.golds]
    return ~np.array(has_words, bool)


def _answer_places(
    source: Questions, encoded: QuestionRows
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find an answer of each question: characters and tokens of the context.

    Returns:
        places: int64 [questions, 2], start and end of the answer in characters; -1 for a question
            without an answer that is in the context.
        firsts, lasts: int64 [questions], first and last token of the answer; -1 for none.
    """
    places = np.full((len(source), 2), -1, np.int64)
    for row, (listed, index) in enumerate(zip(source.answers, source.context_index, strict=True)):
        places[row] = _place(listed, source.contexts[index])
    firsts, lasts = answer_tokens(encoded.contexts, encoded.context_index, *np.maximum(places, 0).T)
    return places, firsts, lasts


def _place(listed: tuple[Answer, ...], context: str) -> tuple[int, int]:
    """Return the characters of the first answer at its start, else of the first in the context."""
    for answer in listed:
        if answer.start >= 0 and context.startswith(answer.text, answer.start):
            return answer.start, answer.start + len(answer.text)
    for answer in listed:
        start = context.find(answer.text)
        if start >= 0:
            return start, start + len(answer.text)
    return -1, -1


def _is_cut(
    places: np.ndarray, firsts: np.ndarray, lasts: np.ndarray, encoded: QuestionRows
) -> np.ndarray:
    """Return whether the first or last token of each answer has characters outside of it.

    Args:
        places: int64 [questions, 2], characters of each answer.
        firsts, lasts: int64 [questions], tokens of each answer; -1 if it has none.
        encoded: has the characters of tokens.

    Returns:
        bool [questions].
    """
    begins = encoded.contexts.offsets[encoded.context_index]
    # Answers without tokens have no place to look up.
    located = np.flatnonzero(firsts >= 0)
    is_cut = np.zeros(len(places), bool)
    first = encoded.contexts.first_characters[(begins + firsts)[located]]
    last = encoded.contexts.last_characters[(begins + lasts)[located]]
    is_cut[located] = (first < places[located, 0]) | (last > places[located, 1])
    return is_cut
