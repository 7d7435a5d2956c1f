"""Where a model should point in each window: the tokens of the answer, or [CLS]."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bert_tf.data.rows.windows import answer_tokens, window_targets
from bert_tf.data.tables.rejects import Reject, nothing_usable
from bert_tf.tasks.question_answering.rows.question_rows import QuestionRows
from bert_tf.tasks.question_answering.rows.questions import Questions


class QuestionTargets(NamedTuple):
    """Targets of the windows of questions.

    Attributes:
        starts, ends: int32 [windows], positions in the row; those of [CLS] where a window does not
            hold the answer.
        is_located: bool [questions], whether the tokens of the answer, or that there are none, are
            known.
    """

    starts: np.ndarray
    ends: np.ndarray
    is_located: np.ndarray


def question_targets(source: Questions, encoded: QuestionRows) -> QuestionTargets:
    """Finds the tokens of the first answer of each question.

    Where no answer has a place, as in files without positions, no question counts as located.
    """
    firsts, lasts = answer_tokens(
        encoded.contexts, encoded.context_index, *_answer_characters(source)
    )
    has_answer = np.array([bool(listed) for listed in source.answers])
    is_located = ~has_answer | (firsts >= 0)
    if has_answer.any() and not is_located[has_answer].any():
        is_located[:] = False
    starts, ends = window_targets(encoded.windows, encoded.question_lengths, firsts, lasts)
    return QuestionTargets(starts, ends, is_located)


def located_questions(source: Questions, is_located: np.ndarray) -> Questions:
    """The questions to train on; those whose answer holds no token become rejects.

    Args:
        source: training questions, whose answers are where they are said to be.
        is_located: bool [questions], from `question_targets`.

    Raises:
        RowsRejected: no question is left.
    """
    has_token = is_located | np.array([not listed for listed in source.answers])
    blank = [
        Reject(
            source.source,
            source.lines[index],
            "answer holds nothing the tokenizer keeps",
            f"question {source.ids[index]!r}: {source.answers[index][0].text!r}",
        )
        for index in np.flatnonzero(~has_token)
    ]
    kept = np.flatnonzero(has_token)
    if not len(kept):
        raise nothing_usable(source.source, [*source.rejects, *blank], noun="question")
    return source.selected(kept, [*source.rejects, *blank])


def _answer_characters(source: Questions) -> tuple[np.ndarray, np.ndarray]:
    """Where the first answer of each question is; 0 and 0 where there is none, or elsewhere."""
    starts = np.zeros(len(source), np.int64)
    ends = np.zeros(len(source), np.int64)
    for index, (listed, context) in enumerate(
        zip(source.answers, source.context_index, strict=True)
    ):
        if listed:
            text, start = listed[0]
            if start >= 0 and source.contexts[context].startswith(text, start):
                starts[index], ends[index] = start, start + len(text)
    return starts, ends
