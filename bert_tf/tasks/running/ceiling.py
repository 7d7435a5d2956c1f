"""The ceiling of labeled rows: the metric of a perfect model, and the causes of its faults.

Before rows are used, the outputs of a perfect model pass all steps of predictions: they are
reduced, decoded, stored as in predictions.jsonl, read back and measured. If the metric is not
perfect then, no training can make it so, and the rows or the options are at fault: answers that are
too long to be predicted, texts with two labels, labels that the file of predictions does not keep.
See `bert_tf.tasks.base.ceiling` for the knowledge of a perfect model.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bert_tf.base.arrays import flat_ranges
from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, UsageError
from bert_tf.data.rows.encoded_rows import GroupedRows
from bert_tf.data.tables.places import Place
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.tasks.base.ceiling import (
    Cause,
    changed_rows,
    lost_tokens,
    row_keys,
    row_offsets,
    token_bounds,
    with_common_targets,
)
from bert_tf.tasks.base.declaration import PredictionField
from bert_tf.tasks.base.prediction_rows import TaskResults, prediction_rows
from bert_tf.tasks.base.task import Task
from bert_tf.tasks.base.task_data import TaskData

_BATCH_ROWS = 64
# A ceiling that rounds to 1.00 is none. GLUE's training sets, which people learned to live with,
# have 0.99 and more.
_PERFECT = 0.995
# Ordinary noise of labels: crowd workers contradict each other in a few percent of repeated texts.
_ORDINARY = 0.9
_SHOWN_CAUSES = 3


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ceiling:
    """The best that a model can do on labeled rows.

    Attributes:
        source: the file.
        rows: number of measured rows, of `rows_of_file`.
        metric: the lowest of the task's deciding metrics.
        metrics: all metrics of a perfect model.
        perfect: value of `metric` if every prediction is right.
        causes: reasons for wrong predictions, those with the largest fraction first.
        example: the place of the first row that is predicted wrong; None without one.
    """

    source: str
    rows: int
    rows_of_file: int
    metric: str
    metrics: Mapping[str, float]
    perfect: float
    causes: tuple[Cause, ...] = ()
    example: Place | None = None

    @property
    def value(self) -> float:
        return self.metrics[self.metric]

    @property
    def fraction(self) -> float:
        """The value as a fraction of the perfect one, at most 1."""
        return min(1.0, self.value / self.perfect)

    @property
    def is_perfect(self) -> bool:
        return self.fraction >= _PERFECT

    def sentence(self, *, is_trained: bool = False) -> str:
        """Return a line with the highest possible value of the metric, the causes, and advice.

        Args:
            is_trained: whether options of the training can no longer change.
        """
        shown = f"{self.value:.2f}"
        if self.perfect != 1.0:  # such as percentages
            shown = f"{self.value:.1f} of {self.perfect:g}"
        sample = ""
        if self.rows < self.rows_of_file:
            sample = f" (by {self.rows:,} of {self.rows_of_file:,} rows)"
        return (
            f"{self.source}: {self.metric} can reach {shown} at best{sample}: "
            f"{self._why(is_trained=is_trained)}"
        )

    def _why(self, *, is_trained: bool) -> str:
        if not self.causes:
            return (
                f"even right outputs are not decoded to the labels, first at line {self.example}; "
                "compare that row with the columns that are read"
            )
        listed = ", ".join(map(str, self.causes[:_SHOWN_CAUSES]))
        first = self.causes[0]
        again = "fine-tune again: " if is_trained and first.is_setting else ""
        return f"{listed}; {again}{first.remedy}"

    def report(self, console: Console, least: float, *, is_trained: bool = False) -> None:
        """Show a line about ordinary noise, warn of a low ceiling, and refuse one below `least`.

        Raises:
            UsageError, InputError: the ceiling is below `least`, a fraction of the perfect metric,
                because of an option, or of the rows.
        """
        if self.is_perfect:
            return
        sentence = self.sentence(is_trained=is_trained)
        if self.fraction < least:
            kind = UsageError if self.causes and self.causes[0].is_setting else InputError
            raise kind(f"{sentence} (--min-ceiling 0 continues nevertheless)")
        if self.fraction < _ORDINARY:
            console.warn(sentence)
        else:
            console.info(sentence)

    def as_json(self) -> dict[str, Any]:
        """Return the entry of metrics.json."""
        return {
            "metric": self.metric,
            "value": self.value,
            "metrics": dict(self.metrics),
            "rows": self.rows,
            "causes": [
                {"count": cause.count, "of": cause.total, "cause": str(cause)}
                for cause in self.causes
            ],
        }


def with_ceiling(results: TaskResults, ceiling: Ceiling | None) -> TaskResults:
    """Return results whose metrics.json and page have the ceiling of their rows."""
    if ceiling is None:
        return results
    details = {**results.report.details, "ceiling": ceiling.as_json()}
    return dataclasses.replace(results, report=dataclasses.replace(results.report, details=details))


def measure_ceiling(
    task: Task, data: TaskData, tokenizer: WordPieceTokenizer, *, fits: bool
) -> Ceiling | None:
    """Measure a perfect model on labeled rows.

    All rows are compared to find those that the model reads alike; `Task.ceiling_rows` of them are
    decoded and measured.

    Args:
        task: the task, with labels that are known.
        data: the rows, with the ids of the tokenizer's vocabulary.
        tokenizer: tokenizer of the model.
        fits: whether to fit thresholds and the like, as in training; a trained model has them.

    Returns:
        The ceiling; None if the task does not declare how it is measured.
    """
    if not task.ceiling_metrics:
        return None
    data = task.known_targets(data)
    common = with_common_targets(data, row_keys(data))
    count = len(data.source)
    most = min(count, task.ceiling_rows)
    sample = data
    perfect = common
    if most < count:
        chosen = np.linspace(0, count - 1, most).astype(np.int64)
        rows = task.encode(data.source.selected(chosen, []), tokenizer, training=False)
        sample = _targets_of(rows, data, chosen)
        perfect = _targets_of(rows, common, chosen)
    results = _measured(task, sample, perfect, fits=fits)
    # Rows as a reader of predictions.jsonl gets them: JSON does not keep every value.
    stored = [json.loads(json.dumps(row)) for row in results.predictions]
    missed = ~np.fromiter(map(task.is_right, stored), bool, len(stored))
    missed |= changed_rows(sample, perfect)
    metrics = {
        name: value if math.isfinite(value) else 0.0 for name, value in results.metrics.items()
    }
    measured = [name for name in task.ceiling_metrics if name in metrics]
    metric = min(measured, key=metrics.__getitem__)
    ceiling = Ceiling(
        source=data.source.source,
        rows=most,
        rows_of_file=count,
        metric=metric,
        metrics=metrics,
        perfect=task.perfect_metric,
    )
    if ceiling.is_perfect:
        return ceiling
    causes = [
        *task.ceiling_causes(sample, missed),
        *_causes_of_reading(task, data, common, tokenizer),
    ]
    causes = sorted((cause for cause in causes if cause.count), key=lambda cause: -cause.fraction)
    if not causes and not missed.any():
        # The metric is not defined for such rows, as F1 without entities.
        return dataclasses.replace(ceiling, metrics={**metrics, metric: task.perfect_metric})
    place = sample.source.place(int(missed.argmax()))
    return dataclasses.replace(ceiling, causes=tuple(causes), example=place)


def _targets_of(rows: TaskData, of: TaskData, chosen: np.ndarray) -> TaskData:
    """Give encoded rows the targets of the rows `chosen` in a larger file."""
    offsets = row_offsets(of)
    bounds = token_bounds(of)
    places = flat_ranges(offsets[chosen], np.diff(offsets)[chosen])
    tokens = flat_ranges(bounds[chosen], np.diff(bounds)[chosen])
    return dataclasses.replace(
        rows,
        targets={name: values[places] for name, values in of.targets.items()},
        token_targets={name: values[tokens] for name, values in of.token_targets.items()},
    )


def _measured(task: Task, data: TaskData, perfect: TaskData, *, fits: bool) -> TaskResults:
    """Apply all steps of predictions to a perfect model's outputs, and measure the result."""
    outputs = task.gold_outputs(perfect)
    parts: list[dict[str, np.ndarray]] = []
    for begin in range(0, len(data.rows), _BATCH_ROWS):
        chosen = np.arange(begin, min(begin + _BATCH_ROWS, len(data.rows)))
        parts.append(task.reduce(data, chosen, outputs(chosen)))
    reduced = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    averaged = data.averaged(reduced)
    if fits:
        task = task.fitted(*averaged)
    predicted = task.predict(*averaged)
    stored = stored_columns(task.declaration.predictions, predicted)
    return task.measure_decisions(data.source, stored)


def stored_columns(
    fields: Sequence[PredictionField], predicted: Mapping[str, Any]
) -> dict[str, Any]:
    """Return predicted columns after a round trip through predictions.jsonl."""
    cells = json.loads(json.dumps(prediction_rows(fields, predicted), ensure_ascii=False))
    columns = dict(predicted)
    for field in fields:
        values = [row[field.name] for row in cells]
        if field.kind == "place":
            values = [-1 if value is None else value for value in values]
        columns[field.name] = values
    return columns


def _causes_of_reading(
    task: Task, data: TaskData, common: TaskData, tokenizer: WordPieceTokenizer
) -> Iterator[Cause]:
    """Yield the reasons why rows that the model reads alike have different targets.

    Each row counts once, by the first cause that applies: the model knows none of its tokens, the
    file has its texts with another label, it was cut, or the tokenizer drops its peculiarities.
    """
    rest = changed_rows(data, common)
    if not rest.any():
        return
    specials = [tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id]
    is_unknown = data.rows.ids == tokenizer.unk_id
    known = _count(~is_unknown & ~np.isin(data.rows.ids, specials), token_bounds(data))
    flag = task.length_flag
    for rows, text, remedy, is_setting in (
        (
            known == 0,
            "holds no word that the vocabulary knows",
            "start from a model for the language of the texts, or correct the columns of texts",
            False,
        ),
        (
            changed_rows(data, with_common_targets(data, _text_keys(task, data))),
            "has the texts of other rows, but another label",
            "decide on one label for each text",
            False,
        ),
        (
            lost_tokens(data) > 0,
            f"reads like rows with another label, once cut by {flag}",
            f"raise {flag}",
            True,
        ),
        (
            _count(is_unknown, token_bounds(data)) > 0,
            "differs from rows with another label only in words that the vocabulary lacks",
            "start from a model for the language of the texts",
            False,
        ),
        (
            np.ones(len(rest), bool),
            "differs from rows with another label only in details that the tokenizer drops (case, "
            "accents, blanks)",
            "start from a cased model, or decide on one label for such texts",
            False,
        ),
    ):
        yield Cause.of_rows(rest & rows, text, remedy, is_setting=is_setting)
        rest = rest & ~rows


def _text_keys(task: Task, data: TaskData) -> np.ndarray:
    """Return a hash of the texts of each row of the file, int64 [rows].

    The order of texts matters if that of sequences matters in `row_keys`.
    """
    # If rows have several pairs, the texts of the first ones come before all others.
    columns = [column[: len(data.source)] for column in task.texts(data.source).values()]
    in_order = not isinstance(data.rows, GroupedRows)
    keys = []
    for row in zip(*columns, strict=True):
        texts = [cell if isinstance(cell, str) else str(sorted(cell)) for cell in row]
        keys.append(hash(tuple(texts if in_order else sorted(texts))))
    return np.array(keys, np.int64)


def _count(holds: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Count the true values in the tokens of each row.

    Args:
        holds: bool [tokens].
        bounds: int64 [rows + 1], where the tokens of each row begin.

    Returns:
        int64 [rows].
    """
    return np.diff(np.concatenate([[0], np.cumsum(holds)])[bounds])
