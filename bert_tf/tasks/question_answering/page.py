"""The sections of a page on answers: kinds of errors, groups of questions, and the worst rows."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.tasks.base.histograms import histogram
from bert_tf.tasks.base.report_sections import (
    CellKind,
    ExamplesSection,
    Mark,
    Section,
    TableSection,
    length_bins,
    table_by_group,
    table_by_length,
    worst_rows,
)
from bert_tf.tasks.question_answering.metrics import question_scores
from bert_tf.tasks.question_answering.rows import normalize_answer

if TYPE_CHECKING:
    from bert_tf.tasks.base.prediction_rows import TaskResults
    from bert_tf.tasks.question_answering.question_files import Answer
    from bert_tf.tasks.question_answering.rows import Questions
    from bert_tf.tasks.question_answering.task import QuestionAnsweringTask

_FIRST_WORDS = 12  # of questions; the most frequent ones have groups of their own
_OTHER = "all others"
_SHOWN_CONTEXT = 160  # characters on both sides of the marks
# Characters between two marks up to which both are shown.
_FARTHEST_MARK = 400
_Measures = Mapping[str, tuple[CellKind, np.ndarray]]


class Outcome(enum.IntEnum):
    """How a predicted answer compares with the gold answers."""

    RIGHT = 0
    LONGER = 1
    SHORTER = 2
    PARTLY = 3
    ELSEWHERE = 4
    NOT_ANSWERED = 5
    ANSWERED = 6


_OUTCOMES = {
    Outcome.RIGHT: "right",
    Outcome.LONGER: "more words than the answer",
    Outcome.SHORTER: "fewer words than the answer",
    Outcome.PARTLY: "some words of the answer, and others",
    Outcome.ELSEWHERE: "no word of the answer",
    Outcome.NOT_ANSWERED: "no answer, though there is one",
    Outcome.ANSWERED: "an answer, though there is none",
}


def outcome_of(predicted: str, golds: Sequence[str], f1: float) -> Outcome:
    """Compare an answer with the gold answers; of several, the nearest counts.

    Args:
        predicted: the answer; "" for none.
        golds: gold answers; empty for a question without an answer.
        f1: F1 of the words, the best over the gold answers, 0 to 1.
    """
    if f1 == 1.0:
        return Outcome.RIGHT
    if not golds:
        return Outcome.ANSWERED
    if not predicted:
        return Outcome.NOT_ANSWERED
    if f1 == 0.0:
        return Outcome.ELSEWHERE
    words = Counter(normalize_answer(predicted).split())
    of_golds = [Counter(normalize_answer(gold).split()) for gold in golds]
    if any(gold <= words for gold in of_golds if gold):
        return Outcome.LONGER
    if any(words <= gold for gold in of_golds):
        return Outcome.SHORTER
    return Outcome.PARTLY


def sections(
    task: QuestionAnsweringTask,
    source: Questions,
    predicted: Mapping[str, Any],
    results: TaskResults,
) -> Iterator[Section]:
    """Yield the sections of an evaluation's page, see `TaskDeclaration.page`."""
    golds = source.golds
    answers = predicted["predicted_answer"]
    exact, f1 = question_scores(answers, golds, version_2=not all(golds))
    probabilities = np.asarray(predicted["predicted_score"], np.float64)
    measures: _Measures = {
        "exact match": ("percent", exact),  # as the metrics above them
        "F1": ("percent", f1),
    }
    yield _outcomes(answers, golds, f1, probabilities)
    if not all(golds):
        kinds = np.array([bool(listed) for listed in golds]).astype(np.int64)
        names = ["without an answer", "with an answer"]
        answered = np.array([bool(text) for text in answers])
        yield table_by_group(
            "By kind of question",
            "questions",
            kinds,
            names,
            {**measures, "answered": ("percent", answered)},
        )
    yield histogram(
        "Probability of the answers",
        "probability",
        "questions",
        probabilities,
        bounds=(0.0, 1.0),
        is_part=f1 < 1,
        part_noun="not quite right",
        note="A model that knows when it is wrong has its wrong answers on the left.",
    )
    yield from _by_answer_length(golds, measures)
    yield _by_first_word(source.questions, measures)
    contexts = [source.contexts[context] for context in source.context_index]
    for title, texts in (("question", source.questions), ("context", contexts)):
        yield table_by_length(
            {title: texts},
            measures,
            title=f"By length of the {title}",
            group_title=f"characters of the {title}",
        )
    yield _wrong_answers(source, contexts, predicted, f1)


def _wrong_answers(
    source: Questions, contexts: Sequence[str], predicted: Mapping[str, Any], f1: np.ndarray
) -> ExamplesSection:
    """Show the wrong answers with the highest probabilities.

    Args:
        source: the questions.
        contexts: context of each question.
        predicted: outputs by name, [questions].
        f1: float64 [questions], 0 to 1.
    """
    golds = source.golds
    answers = predicted["predicted_answer"]
    probabilities = np.asarray(predicted["predicted_score"], np.float64)
    places = zip(predicted["predicted_start"], predicted["predicted_end"], strict=True)
    shown = []
    for context, listed, place in zip(contexts, source.answers, places, strict=True):
        shown.append(_shown_context(context, _marks(context, listed, place)))
    has_lines = len(set(source.lines)) > 1  # JSON may be one line
    return worst_rows(
        np.where(f1 < 1, probabilities - f1, -np.inf),
        f1 < 1,
        source.all_places if has_lines else [None] * len(source.lines),
        {"question": source.questions, "context": [text for text, _ in shown]},
        lambda row: {
            **({} if has_lines else {"id": source.ids[row]}),
            "answers": " / ".join(dict.fromkeys(golds[row])) or "none",
            "predicted": answers[row] or "no answer",
            "probability": f"{probabilities[row]:.4f}",
            "F1": f"{f1[row]:.2f}",
            "error": _OUTCOMES[outcome_of(answers[row], golds[row], f1[row])],
        },
        title="Wrong answers",
        note="Those whose probability is highest above their F1 first, with the context around "
        "the predicted and the right answer, or around the predicted one if they are far apart.",
        marks=lambda row: {"context": shown[row][1]},
        legend={
            "right": "predicted, and an answer",
            "missed": "an answer that is not predicted",
            "wrong": "predicted, but no answer",
        },
    )


def _outcomes(
    answers: Sequence[str], golds: Sequence[Sequence[str]], f1: np.ndarray, scores: np.ndarray
) -> TableSection:
    """Count answers by outcome."""
    answered = zip(answers, golds, f1.tolist(), strict=True)
    outcomes = np.array([outcome_of(*each) for each in answered])
    counts = np.bincount(outcomes, minlength=len(Outcome))
    return TableSection(
        title="How answers go wrong",
        columns=(
            ("predicted", "text"),
            ("questions", "count"),
            ("of all", "share"),
            ("mean probability", "fraction"),
        ),
        rows=[
            [
                name,
                int(counts[outcome]),
                float(counts[outcome] / len(outcomes)),
                float(scores[outcomes == outcome].mean()),
            ]
            for outcome, name in _OUTCOMES.items()
            if counts[outcome]
        ],
        note="Words are compared as F1 does: without case, punctuation and articles.",
    )


def _by_first_word(questions: Sequence[str], measures: _Measures) -> TableSection:
    """Tabulate questions by their first word: who, when, …."""
    words = [(question.split(maxsplit=1) or [""])[0].casefold() for question in questions]
    names = [word for word, _ in Counter(words).most_common(_FIRST_WORDS)]
    number = {word: place for place, word in enumerate(names)}
    groups = np.array([number.get(word, len(names)) for word in words])
    return table_by_group("By first word", "first word", groups, [*names, _OTHER], measures)


def _by_answer_length(
    golds: Sequence[Sequence[str]], measures: _Measures
) -> Iterator[TableSection]:
    """Tabulate questions that have an answer by the number of words of the first one."""
    has_answer = np.array([bool(listed) for listed in golds])
    if not has_answer.any():
        return
    words = np.array([len(listed[0].split()) for listed in golds if listed])
    chosen = {name: (kind, values[has_answer]) for name, (kind, values) in measures.items()}
    yield table_by_group(
        "By length of the answer", "words of the answer", *length_bins(words), chosen
    )


def _marks(context: str, answers: Sequence[Answer], place: tuple[int, int]) -> list[Mark]:
    """Mark the predicted answer, and gold answers at other places of the context."""
    begin, end = map(int, place)
    golds = {
        (answer.start, answer.start + len(answer.text))
        for answer in answers
        if answer.start >= 0 and context.startswith(answer.text, answer.start)
    }
    if begin >= 0 and (begin, end) in golds:
        return [Mark(begin, end, "right")]
    marks = [Mark(begin, end, "wrong")] if begin >= 0 else []
    return marks + [Mark(start, stop, "missed") for start, stop in sorted(golds)]


def _shown_context(context: str, marks: Sequence[Mark]) -> tuple[str, list[Mark]]:
    """Cut a context around its first mark and the marks near it.

    Returns:
        The part of the context, with `…` where it was cut, and the marks in it.
    """
    if not marks:
        return context, []
    first = marks[0]
    near = [
        mark
        for mark in marks
        if max(mark.start - first.end, first.start - mark.end) <= _FARTHEST_MARK
    ]
    begin = max(0, min(mark.start for mark in near) - _SHOWN_CONTEXT)
    end = min(len(context), max(mark.end for mark in near) + _SHOWN_CONTEXT)
    before = "…" if begin else ""
    after = "…" if end < len(context) else ""
    moved = len(before) - begin
    marks = [mark._replace(start=mark.start + moved, end=mark.end + moved) for mark in near]
    return f"{before}{context[begin:end]}{after}", marks
