"""The page of an evaluation of a model that answers questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from bert_tf.tasks.base.report_sections import (
    Example,
    ExamplesSection,
    Section,
    TableSection,
    length_bins,
    table_by_group,
    worst_first,
)
from bert_tf.tasks.base.task import TaskResults
from bert_tf.tasks.question_answering.metrics import question_scores
from bert_tf.tasks.question_answering.rows import Questions
from bert_tf.tasks.question_answering.task import QuestionAnsweringTask

_FIRST_WORDS = 12
_OTHER = "other"
_SHOWN_CONTEXT = 160


def sections(
    task: QuestionAnsweringTask,
    source: Questions,
    predicted: Mapping[str, Any],
    results: TaskResults,
) -> Iterator[Section]:
    golds = source.golds
    exact, f1 = question_scores(predicted["predicted_answer"], golds, version_2=not all(golds))
    measures: dict[str, tuple[Any, np.ndarray]] = {
        "exact match": ("percent", exact),  # as the metrics above them
        "F1": ("percent", f1),
    }
    if not all(golds):
        kinds = np.array([bool(listed) for listed in golds]).astype(np.int64)
        names = ["without an answer", "with an answer"]
        answered = np.array([bool(text) for text in predicted["predicted_answer"]])
        yield table_by_group(
            "By kind of question",
            "questions",
            kinds,
            names,
            {**measures, "answered": ("percent", answered)},
        )
    yield _by_first_word(source.questions, measures)
    for title, texts in (
        ("question", source.questions),
        ("context", [source.contexts[context] for context in source.context_index]),
    ):
        groups, names = length_bins(np.array([len(text) for text in texts]))
        yield table_by_group(
            f"By length of the {title}", f"characters of the {title}", groups, names, measures
        )
    yield _wrong_answers(source, predicted, f1)


def _by_first_word(
    questions: list[str], measures: Mapping[str, tuple[Any, np.ndarray]]
) -> TableSection:
    words = [(question.split(maxsplit=1) or [""])[0].casefold() for question in questions]
    names = [word for word, _ in Counter(words).most_common(_FIRST_WORDS)]
    number = {word: place for place, word in enumerate(names)}
    groups = np.array([number.get(word, len(names)) for word in words])
    return table_by_group("By first word", "first word", groups, [*names, _OTHER], measures)


def _wrong_answers(
    source: Questions, predicted: Mapping[str, Any], f1: np.ndarray
) -> ExamplesSection:
    sure = np.where(f1 < 1, np.asarray(predicted["predicted_score"], float) - f1, -np.inf)
    return ExamplesSection(
        title="Wrong answers",
        examples=[
            Example(
                line=source.lines[row],
                facts={
                    "answers": _listed(source.golds[row]),
                    "predicted": predicted["predicted_answer"][row] or "no answer",
                    "probability": f"{predicted['predicted_score'][row]:.4f}",
                    "F1": f"{f1[row]:.2f}",
                },
                texts={
                    "question": source.questions[row],
                    "context": _around(source, predicted, row),
                },
            )
            for row in worst_first(sure).tolist()
            if f1[row] < 1
        ],
        note="Those whose probability is highest above their F1 first. The context is what is "
        "around the predicted answer.",
    )


def _listed(golds: list[str]) -> str:
    return " / ".join(dict.fromkeys(golds)) or "none"


def _around(source: Questions, predicted: Mapping[str, Any], row: int) -> str:
    context = source.contexts[source.context_index[row]]
    start, end = int(predicted["predicted_start"][row]), int(predicted["predicted_end"][row])
    if start < 0:
        return context
    first, last = max(0, start - _SHOWN_CONTEXT), min(len(context), end + _SHOWN_CONTEXT)
    before, after = "…" if first else "", "…" if last < len(context) else ""
    return f"{before}{context[first:last]}{after}"
