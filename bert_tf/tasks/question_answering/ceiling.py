"""Ceiling of question answering: answers that no model can give.

Answers that are too long, that no window holds whole, or that begin inside of a token cannot be
predicted. See `bert_tf.tasks.running.ceiling`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from bert_tf.data.rows.windows import answer_tokens, window_targets
from bert_tf.tasks.base.ceiling import CERTAIN, Cause
from bert_tf.tasks.question_answering.host import QuestionRows
from bert_tf.tasks.question_answering.rows import normalize_answer

if TYPE_CHECKING:
    from bert_tf.tasks.base.task_data import TaskData
    from bert_tf.tasks.question_answering.rows import Answer, Questions
    from bert_tf.tasks.question_answering.task import QuestionAnsweringTask


def with_known_answers(data: TaskData) -> TaskData:
    """Return data with the position of an answer in each window, [CLS] if a window has none.

    Evaluation rows need no positions. An answer without one is searched for in the context.
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


def answer_causes(
    task: QuestionAnsweringTask, data: TaskData, missed: np.ndarray
) -> Iterator[Cause]:
    """Yield why answers of missed questions cannot be predicted; each counts by the first cause.

    Args:
        task: with the lengths that limit answers.
        data: the questions.
        missed: bool [questions], those that a perfect model answers wrong.
    """
    source: Questions = data.source
    encoded: QuestionRows = data.details
    places, firsts, lasts = _answer_places(source, encoded)
    has_answer = np.array([bool(listed) for listed in source.answers], bool)
    lengths = np.where(firsts >= 0, lasts - firsts + 1, 0)
    needed = int(lengths[missed].max(initial=0))
    rest = missed & has_answer
    causes = (
        (
            places[:, 0] < 0,
            "is not in the context",
            "correct the answers, which have to be parts of their context, or name the columns",
            False,
        ),
        (firsts < 0, "holds no word that the tokenizer keeps", "correct the answers", False),
        (
            lengths > task.max_answer_length,
            f"is longer than --max-answer-length {task.max_answer_length}",
            f"raise --max-answer-length to {needed}",
            True,
        ),
        (
            ~_are_in_a_window(encoded, firsts, lasts),
            f"is not whole in any window of --max-seq-length {task.max_seq_length} and "
            f"--doc-stride {task.doc_stride}",
            "lower --doc-stride, or raise --max-seq-length",
            True,
        ),
        (
            _is_cut(places, firsts, lasts, encoded),
            "is not made of whole tokens",
            "correct the answers' starts, or start from a model whose vocabulary splits them there",
            False,
        ),
        (
            _is_without_words(source),
            "consists of articles and punctuation, which the metrics leave out",
            "correct the answers",
            False,
        ),
    )
    for rows, text, remedy, is_setting in causes:
        yield Cause(
            count=int((rest & rows).sum()),
            total=int(has_answer.sum()),
            text=text,
            remedy=remedy,
            noun="answer",
            is_setting=is_setting,
        )
        # An answer counts once, by the first cause: the remedy that has to come first.
        rest = rest & ~rows
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
    """Return for each question whether nothing is left of its answers in the metrics, bool."""
    return np.array(
        [not any(normalize_answer(answer.text) for answer in listed) for listed in source.answers],
        bool,
    )


def _answer_places(
    source: Questions, encoded: QuestionRows
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find an answer of each question: characters and tokens of the context.

    Returns:
        places: int64 [questions, 2], begin and end of its characters; -1 if it has no answer, or
            none that is in the context.
        firsts, lasts: int64 [questions], its tokens; -1 if it has none.
    """
    places = np.full((len(source), 2), -1, np.int64)
    for row, (listed, index) in enumerate(zip(source.answers, source.context_index, strict=True)):
        places[row] = _place(listed, source.contexts[index])
    firsts, lasts = answer_tokens(encoded.contexts, encoded.context_index, *np.maximum(places, 0).T)
    return places, firsts, lasts


def _place(listed: tuple[Answer, ...], context: str) -> tuple[int, int]:
    """Return characters of the first answer that is at its start, else of the first anywhere."""
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
    # Places of the others would be those of some other text.
    located = np.flatnonzero(firsts >= 0)
    is_cut = np.zeros(len(places), bool)
    first = encoded.contexts.first_characters[(begins + firsts)[located]]
    last = encoded.contexts.last_characters[(begins + lasts)[located]]
    is_cut[located] = (first < places[located, 0]) | (last > places[located, 1])
    return is_cut
