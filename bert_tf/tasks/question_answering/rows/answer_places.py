"""Answers that are not where their context has them, or that it does not have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bert_tf.base.wording import quantity
from bert_tf.tasks.question_answering.answers.metrics import normalize_answer
from bert_tf.tasks.question_answering.rows.questions import Answer, Questions

_SHOWN = 5


def place_fault(answer: Answer, context: str) -> tuple[str, str] | None:
    """Why a question cannot be trained on, as reason and detail of a reject; None if it can."""
    text, start = answer
    if start < 0:
        return "answer has no start that is a whole number", repr(text)
    if context.startswith(text, start):
        return None
    there = f"{text!r} at {start}, where the context has {context[start : start + len(text)]!r}"
    nearest = _nearest_place(answer, context)
    if nearest is None:
        return "answer is not in the context", there
    return "answer is not at its start", f"{there}; it has the answer at {nearest}"


def doubtful_answers(questions: Questions) -> Iterator[str]:
    """Lines on evaluation questions whose gold answers are likely wrong; they still count."""
    absent, misplaced = [], []
    for identity, listed, index in zip(
        questions.ids, questions.answers, questions.context_index, strict=True
    ):
        context = questions.contexts[index]
        if not listed:
            continue
        text, start = listed[0]
        if not any(_is_in(answer.text, context) for answer in listed):
            absent.append(identity)
        elif start >= 0 and not context.startswith(text, start):
            misplaced.append(identity)
    total = quantity(len(questions), "question")
    if absent:
        yield (
            f"{questions.source}: {len(absent):,} of {total} have an answer that is not in the "
            f"context, so that no prediction can match it exactly: {_shown(absent)}"
        )
    if misplaced:
        yield (
            f"{questions.source}: {len(misplaced):,} of {total} have an answer that is not at its "
            f"start; metrics compare its text, and the loss leaves it out: {_shown(misplaced)}"
        )


def _is_in(text: str, context: str) -> bool:
    return text in context or normalize_answer(text) in normalize_answer(context)


def _nearest_place(answer: Answer, context: str) -> int | None:
    """Where the context has the answer, of several places the one nearest to its start."""
    text, start = answer
    places = {context.rfind(text, 0, start + len(text)), context.find(text, start)} - {-1}
    return min(places, key=lambda place: abs(place - start), default=None)


def _shown(ids: Sequence[str]) -> str:
    listed = ", ".join(ids[:_SHOWN])
    return listed if len(ids) <= _SHOWN else f"{listed} and {len(ids) - _SHOWN:,} more"
