"""The page of a table with predictions, as `score` and `evaluate` write them.

It is laid out only from the table, long after the job: its labels, the certainty of its
predictions, and its least certain rows.
"""

from __future__ import annotations

import dataclasses
import heapq
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bert_tf.base.errors import BertPipelineError
from bert_tf.base.wording import quantity
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.places import Place
from bert_tf.data.tables.tables import read_table_blocks
from bert_tf.tasks.base.histograms import confidence_histogram, histogram
from bert_tf.tasks.base.report_sections import (
    MOST_EXAMPLES,
    MOST_ROWS,
    Example,
    ExamplesSection,
    HistogramSection,
    Section,
    TableSection,
    example_at,
)
from bert_tf.tasks.registry import TASKS
from pipeline.report.artifact import tables_of
from pipeline.report.document import REPORT

# The first rows of a table that are read: half a minute at most, and enough for shares to a tenth
# of a percent if the rows are in random order.
_MOST_READ = 200_000
_NO_LABEL = "(none)"  # of a row
_UNNAMED = "(unnamed)"  # of a part of a text, where a model has a single kind of parts
_SHOWN_LABELS = 3  # of the probabilities of all labels
_TRUE = "label"  # beside a predicted one, in predictions of an evaluation


class _Names(NamedTuple):
    """Columns of predictions by their kind, under their names in the table.

    They are those of all tasks together: a table does not tell its task, and names of columns
    have the same meaning in all tasks.

    Attributes:
        labels: columns with one predicted label per row.
        lists: columns with a JSON list of labels, or of parts of the text with a label each.
        scores: columns with the probability of the prediction.
        values: columns with a predicted number.
    """

    labels: tuple[str, ...]
    lists: tuple[str, ...]
    scores: tuple[str, ...]
    values: tuple[str, ...]


def _names(renamed: Mapping[str, str]) -> _Names:
    """Return the columns of all tasks; `renamed` has new names by those of the tasks."""
    by_kind: dict[str, dict[str, None]] = {}
    for task in TASKS.values():
        seen: set[str] = set()
        for field in task.predictions:
            # The first of several lists has the labels, the others have details of each.
            if not field.is_extra and not (field.kind == "json" and "json" in seen):
                name = renamed.get(field.name, field.name)
                by_kind.setdefault(field.kind, {})[name] = None
            seen.add(field.kind)
    return _Names(
        labels=tuple(by_kind.get("label", ())),
        lists=tuple(by_kind.get("json", ())),
        scores=tuple(by_kind.get("probability", ())),
        values=tuple(by_kind.get("value", ())),
    )


class _Doubtful(NamedTuple):
    """A row in the heap of those with the lowest probability, which holds the surest at its top.

    Attributes:
        minus_score: minus the probability.
        minus_number: minus the number of the row, from 1; the earlier of two equals stays.
        place: of the row in its table.
        row: its cells. Numbers differ, so places and rows are never compared.
    """

    minus_score: float
    minus_number: int
    place: Place
    row: dict[str, Any]


@dataclasses.dataclass
class _Predictions:
    """Counts, values and rows of a table, gathered in one pass.

    Attributes:
        rows: number of rows that were read.
        labels: predictions by label; a label of a list counts once per row. A row without one,
            such as one below `--abstain-below`, counts as `_NO_LABEL`.
        true: rows by their own label, if they have one.
        scores: probability of each prediction, without rows that have no label.
        wrong: whether each of these predictions is wrong; False for rows without an own label.
        values: predicted numbers.
        least: a heap of up to `MOST_EXAMPLES` rows with the lowest probability.
        first: the first rows with their places.
        fault: why rows after these cannot be read; "" if they can.
    """

    rows: int = 0
    labels: Counter[str] = dataclasses.field(default_factory=Counter)
    true: Counter[str] = dataclasses.field(default_factory=Counter)
    scores: list[float] = dataclasses.field(default_factory=list)
    wrong: list[bool] = dataclasses.field(default_factory=list)
    values: list[float] = dataclasses.field(default_factory=list)
    least: list[_Doubtful] = dataclasses.field(default_factory=list)
    first: list[tuple[Place, dict[str, Any]]] = dataclasses.field(default_factory=list)
    fault: str = ""

    def add(self, row: dict[str, Any], place: Place, names: _Names, samples: int) -> None:
        """Add a row; the first `samples` rows are kept."""
        self.rows += 1
        if len(self.first) < samples:
            self.first.append((place, row))
        predicted = _first_of(row, names.labels)
        has_labels = any(name in row for name in names.labels)
        if has_labels:
            self.labels[_NO_LABEL if predicted is None else str(predicted)] += 1
        if any(name in row for name in names.lists):
            listed = _labels_in(_first_of(row, names.lists))
            if listed is not None:
                self.labels.update(listed or {_NO_LABEL})
        value = _number(_first_of(row, names.values))
        if value is not None:
            self.values.append(value)
        true = row.get(_TRUE)
        if isinstance(true, str) and has_labels:
            self.true[true] += 1
        score = _number(_first_of(row, names.scores))
        if score is None:
            return
        # A row without a prediction is uncertain, but neither right nor wrong.
        if predicted is not None or not has_labels:
            self.scores.append(score)
            self.wrong.append(isinstance(true, str) and has_labels and true != predicted)
        entry = _Doubtful(-score, -self.rows, place, row)
        if len(self.least) < MOST_EXAMPLES:
            heapq.heappush(self.least, entry)
        elif entry > self.least[0]:
            heapq.heapreplace(self.least, entry)

    def forget_other_labels(self) -> None:
        """Forget the labels of the rows if none of them is ever predicted.

        A column `label` of a scored table may belong to another task, or code labels as 0 and 1.
        """
        if self.true.keys().isdisjoint(self.labels):
            self.true.clear()


def predictions_sections(
    path: Path, manifest: Mapping[str, Any], *, samples: int
) -> list[Section | str]:
    """Lay out the tables of a job that predicts.

    Args:
        path: a table, or the folder of the job.
        manifest: of the job.
        samples: first rows to show.

    Returns:
        Sections and notes. Empty only if no table has readable rows and there is no `report.html`.
    """
    content: list[Section | str] = []
    if path.is_dir() and (path / REPORT).is_file():
        content.append(
            f'<p class="note">{escape(str(path / REPORT))} shows the most telling rows and the '
            "measures of this task.</p>"
        )
    tables = _tables_of_job(path, str(manifest.get("command")))
    for table in tables:
        suffix = f" ({table.name})" if len(tables) > 1 else ""
        gathered = _read(table, manifest, max(samples, 1))
        # Without rows it is a CoNLL file, which is no table, or its beginning is damaged.
        if gathered.rows:
            if gathered.fault:
                rows = quantity(gathered.rows, "row")
                content.append(
                    f'<p class="note">Only the first {rows} could be read: '
                    f"{escape(gathered.fault)}</p>"
                )
            if manifest.get("command") != "evaluate":
                gathered.forget_other_labels()
            content += _sections(gathered, manifest, suffix)
    return content


def _tables_of_job(path: Path, command: str) -> list[Path]:
    """Return the tables of a job that hold predictions."""
    if command == "evaluate":
        own = path / "predictions.jsonl"
        return [own] if own.is_file() else []
    return [path] if path.is_file() else tables_of(path)


def _read(table: Path, manifest: Mapping[str, Any], samples: int) -> _Predictions:
    """Gather the predictions of a table, as far as it can be read as one."""
    config = manifest.get("config", {})
    renamed = dict(entry.split("=", 1) for entry in config.get("rename") or ())
    names = _names(renamed)
    gathered = _Predictions()
    dialect = TableDialect(id_column=None)
    try:
        for block in read_table_blocks(table, dialect=dialect, max_rows=_MOST_READ):
            for row, line in zip(block.rows, block.lines, strict=True):
                gathered.add(row, block.places.at(line), names, samples)
    except BertPipelineError as error:
        gathered.fault = str(error)
    return gathered


def _sections(
    gathered: _Predictions, manifest: Mapping[str, Any], suffix: str
) -> Iterator[Section]:
    """Lay out the predictions of a table; titles end in `suffix`."""
    note = ""
    if gathered.rows == _MOST_READ:
        note = f"Of the first {quantity(gathered.rows, 'row')}."
    if gathered.labels:
        yield _label_table(gathered, suffix, note)
    if gathered.scores:
        yield _scores(gathered, suffix, note)
    if gathered.values:
        values = np.array(gathered.values, np.float64)
        yield histogram(f"Predicted values{suffix}", "value", "rows", values, note=note)
    columns = manifest.get("columns") or {}
    yield ExamplesSection(
        title=f"First rows{suffix}",
        examples=[_example(place, row, columns) for place, row in gathered.first],
    )
    if gathered.least:
        least = sorted(gathered.least, reverse=True)
        yield ExamplesSection(
            title=f"Least certain rows{suffix}",
            examples=[_example(entry.place, entry.row, columns) for entry in least],
            note="By the probability of the prediction, the lowest first.",
        )


def _label_table(gathered: _Predictions, suffix: str, note: str) -> TableSection:
    order = gathered.labels.most_common(MOST_ROWS)
    more = len(gathered.labels) - len(order)
    left = f" {more:,} more labels are rarer." if more else ""
    columns = [("label", "text"), ("rows", "count"), ("of all", "share")]
    rows: list[list[Any]] = [[label, count, count / gathered.rows] for label, count in order]
    if gathered.true:
        columns.append(("labeled so", "count"))
        rows = [[*row, gathered.true[row[0]]] for row in rows]
    return TableSection(
        title=f"Predicted labels{suffix}",
        columns=tuple(columns),  # type: ignore[arg-type]
        rows=rows,
        note=f"{note}{left}".strip(),
    )


def _scores(gathered: _Predictions, suffix: str, note: str) -> HistogramSection:
    scores = np.array(gathered.scores, np.float64)
    if gathered.true:
        section = confidence_histogram(scores, np.array(gathered.wrong), note)
        return dataclasses.replace(section, title=f"{section.title}{suffix}")
    title = f"Probability of the predictions{suffix}"
    return histogram(title, "probability", "rows", scores, bounds=(0.0, 1.0), note=note)


def _example(place: Place, row: Mapping[str, Any], columns: Mapping[str, Any]) -> Example:
    """Return a row with its predictions as facts.

    Args:
        place: of the row in the table.
        row: its cells.
        columns: of the manifest: those that the model reads, and those that were added.
    """
    added = set(columns.get("added", ()))
    cells = {name: _shown(value) for name, value in row.items()}
    own = row.get("line")
    if not added and isinstance(own, int):  # a prediction names its row
        place = Place(own, row.get("row") or 0, str(row.get("id", "")))
        cells = {name: text for name, text in cells.items() if name not in Place._fields}
    texts = {name: cells.pop(name) for name in _text_columns(columns, cells)}
    facts = {name: text for name, text in cells.items() if not added or name in added}
    return example_at(place, facts=facts, texts=texts)


def _text_columns(columns: Mapping[str, Any], row: Mapping[str, Any]) -> list[str]:
    """Return the columns of a row that the model reads."""
    read: list[str] = []
    for name, column in columns.items():
        if name != "added":
            read += [column] if isinstance(column, str) else list(column or ())
    # Two roles may name the same column.
    return [name for name in dict.fromkeys(read or ["text", "text_pair"]) if name in row]


def _first_of(row: Mapping[str, Any], columns: Sequence[str]) -> Any:
    """Return the first value of a row in some columns; None if all are missing or empty."""
    # What is null in JSON is an empty cell in CSV.
    return next((row[name] for name in columns if row.get(name) not in (None, "")), None)


def _labels_in(value: Any) -> set[str] | None:
    """Return the distinct labels of a cell.

    Args:
        value: a list (or JSON text of one) of labels, or of objects with `label`; or one of these;
            None for none.

    Returns:
        The labels; None if the cell holds something else, such as tokens for masks.
    """
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {value}
    items = value if isinstance(value, list) else [value]
    labels: set[str] = set()
    for item in items:
        if isinstance(item, list) or (isinstance(item, dict) and "label" not in item):
            return None
        if isinstance(item, dict):
            labels.add(str(item["label"] or _UNNAMED))
        elif item is not None:
            labels.add(str(item))
    return labels


def _number(value: Any) -> float | None:
    """Return a finite number, perhaps written as text; None for anything else."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _shown(value: Any) -> str:
    """Write a cell; entities, tags and probabilities of labels are abbreviated."""
    if value is None:
        return ""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            value = json.loads(value)
        except ValueError:
            return value
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and value and all(map(_is_number, value.values())):
        names = sorted(value, key=lambda name: -value[name])[:_SHOWN_LABELS]
        more = ", …" if len(value) > len(names) else ""
        return ", ".join(f"{name} {value[name]:.4g}" for name in names) + more
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        return ", ".join(map(_shown_part, value)) or "-"
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value) or "-"
    return json.dumps(value, ensure_ascii=False)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown_part(part: Mapping[str, Any]) -> str:
    if "tag" in part:
        return str(part["tag"])
    where = part.get("text", f"{part.get('start', '')} to {part.get('end', '')}")
    return f"{where} ({part['label']})" if part.get("label") else str(where)
