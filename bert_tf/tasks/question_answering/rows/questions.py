"""Questions with their contexts and answers, once they are read."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple, Self

import numpy as np

from bert_tf.base.wording import quantity
from bert_tf.data.tables.rejects import Reject


class Answer(NamedTuple):
    """A text and the character of the context it starts at, -1 where that is not given."""

    text: str
    start: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuestionColumns:
    """Where a table holds what; answers are None where they are not needed."""

    question: str
    context: str
    answer: str | None = None
    answer_start: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Questions:
    """Usable questions of a file.

    Attributes:
        source: the file.
        ids: SQuAD's ids, or the lines of a table.
        lines: the line each question begins on, counted from 1.
        questions: the texts.
        contexts: every context once.
        context_index: int64 [questions], the context of each question.
        answers: the answers of each question, none for a question without an answer.
        rejects: questions that cannot be used.
    """

    source: str
    ids: list[str]
    lines: list[int]
    questions: list[str]
    contexts: list[str]
    context_index: np.ndarray
    answers: list[tuple[Answer, ...]]
    rejects: list[Reject]

    @property
    def golds(self) -> list[list[str]]:
        """The texts of each question's answers."""
        return [[answer.text for answer in listed] for listed in self.answers]

    def __len__(self) -> int:
        return len(self.ids)

    def counted(self) -> str:
        """How many there are, and how many have no answer, for the user."""
        without = sum(not listed for listed in self.answers)
        return f"{quantity(len(self), 'question')}, {without:,} of them without an answer"

    def split(self, held_out: np.ndarray) -> tuple[Self, Self]:
        """The other questions with all rejects, and those that are held out, bool [questions]."""
        kept, out = np.flatnonzero(~held_out), np.flatnonzero(held_out)
        return self.selected(kept, self.rejects), self.selected(out, [])

    def selected(self, rows: np.ndarray, rejects: list[Reject]) -> Self:
        """Some of the questions, int [n], with their contexts alone.

        Args:
            rows: which.
            rejects: the rejects of the result.
        """
        used, context_index = np.unique(self.context_index[rows], return_inverse=True)
        return dataclasses.replace(
            self,
            ids=[self.ids[row] for row in rows],
            lines=[self.lines[row] for row in rows],
            questions=[self.questions[row] for row in rows],
            contexts=[self.contexts[context] for context in used],
            context_index=context_index,
            answers=[self.answers[row] for row in rows],
            rejects=rejects,
        )
