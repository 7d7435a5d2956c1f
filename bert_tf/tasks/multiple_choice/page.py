"""The page of an evaluation of a model that chooses one of several texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from bert_tf.tasks.base.report_sections import (
    Example,
    ExamplesSection,
    MatrixSection,
    Section,
    characters_of,
    length_bins,
    shown_texts,
    table_by_group,
    worst_first,
)
from bert_tf.tasks.base.task import TaskResults
from bert_tf.tasks.multiple_choice.rows import ChoiceRows
from bert_tf.tasks.multiple_choice.task import MultipleChoiceTask

_MOST_CHOICES = 20
_LEAST_PROBABILITY = float(np.finfo(np.float32).tiny)


def sections(
    task: MultipleChoiceTask, source: ChoiceRows, predicted: Mapping[str, Any], results: TaskResults
) -> Iterator[Section]:
    right, chosen = source.right, np.asarray(predicted["predicted_choice"])
    measures: dict[str, tuple[Any, np.ndarray]] = {
        "accuracy": ("fraction", right == chosen),
        "by chance": ("fraction", 1.0 / source.counts),
        "mean confidence": ("fraction", np.asarray(predicted["predicted_score"], float)),
    }
    most = int(source.counts.max())
    if source.counts.min() < most:
        names = [str(count) for count in range(most + 1)]
        yield table_by_group("By number of choices", "choices", source.counts, names, measures)
    texts = task.texts(source)
    yield table_by_group("By length", "characters", *length_bins(characters_of(texts)), measures)
    if most <= _MOST_CHOICES:
        names = [str(place) for place in range(most)]
        yield MatrixSection(
            title="Places",
            row_title="right choice",
            column_title="predicted",
            rows=names,
            columns=names,
            counts=np.bincount(right * most + chosen, minlength=most * most).reshape(most, most),
            note="A column that is darker than the others is a place that the model prefers.",
        )
    of_right = np.asarray(predicted["probabilities"])[np.arange(len(right)), right]
    losses = -np.log(np.maximum(of_right.astype(np.float64), _LEAST_PROBABILITY))
    wrong = np.where(right == chosen, -1.0, losses)
    yield ExamplesSection(
        title="Most wrong rows",
        examples=[
            Example(
                line=source.lines[row],
                facts={
                    "right": str(right[row]),
                    "predicted": str(chosen[row]),
                    "probability of the right one": f"{of_right[row]:.4f}",
                    "of the prediction": f"{predicted['predicted_score'][row]:.4f}",
                },
                texts=shown_texts(texts, row),
            )
            for row in worst_first(wrong).tolist()
            if wrong[row] >= 0
        ],
        note="Wrongly predicted rows by the negative log probability of the right choice.",
    )
