"""The best of several runs, whether its lead may be chance, and the rows that changed."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from bert_tf.base.errors import InputError
from bert_tf.base.wording import quantity, shown_measure
from bert_tf.data.tables.places import ID, Place
from bert_tf.tasks.base.report_sections import Section, TableSection
from bert_tf.tasks.registry import task_from_settings
from bert_tf.training.best_model import BestModel, is_lower_better
from pipeline.outputs.manifest import check_files
from pipeline.report.runs import Run

_PREDICTIONS = "predictions.jsonl"
# Larger evaluations are compared only by their metrics, so that a page takes seconds.
_MOST_ROWS = 200_000
_GOLD = ("line", "id", "label", "answers", "annotated_entities", "anchor", "positive")
_MOST_CHANGED = 15  # rows of a list
# A difference of fewer standard errors may be chance: other rows could give another one.
_CLEAR_ERRORS = 2.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evaluated:
    """A finished run with the metric of its best model.

    Attributes:
        rows: of its predictions; None if there are none, or too many.
    """

    run: Run
    metric: str
    value: float
    error: float | None
    rows: Sequence[Mapping[str, Any]] | None


def compared_runs(runs: Sequence[Run]) -> list[Section | str]:
    """Compare runs by the metric that chose their best models.

    Returns:
        The sections; [] if the runs share no metric.

    Raises:
        InputError: predictions are damaged.
    """
    evaluated = [run for run in map(_evaluated, runs) if run is not None]
    if not _share_metric(evaluated):
        return []
    best, *others = _ranked(evaluated)
    value = shown_measure(best.value, best.error)
    lines = [f"{best.run.name} is the best by {best.metric}: {value}."]
    has_same_rows = [have_same_rows(best, other) for other in others]
    if False in has_same_rows:
        lines.append(
            "Not all are measured on the same rows, so their metrics do not compare the models."
        )
    elif None in has_same_rows:
        lines.append("It is not known whether all are measured on the same rows.")
    table = _table(best, others, has_same_rows)
    content: list[Section | str] = [
        "".join(f'<p class="verdict">{escape(line)}</p>' for line in lines),
        table,
    ]
    comparable = [other for other, is_same in zip(others, has_same_rows, strict=True) if is_same]
    if comparable:
        content += list(_changed_rows(best, comparable[0]))
    return content


def best_name(runs: Sequence[Run]) -> str | None:
    """Return the name of the run with the best metric; None if they share no metric."""
    evaluated = [run for run in map(_without_rows, runs) if run is not None]
    if not _share_metric(evaluated):
        return None
    return _ranked(evaluated)[0].run.name


def _share_metric(evaluated: Sequence[Evaluated]) -> bool:
    """Return whether there are several runs, all with the same metric."""
    return len(evaluated) > 1 and len({each.metric for each in evaluated}) == 1


def _ranked(evaluated: Sequence[Evaluated]) -> list[Evaluated]:
    """Sort runs of the same metric, the best first; equal ones stay in their order."""
    sign = -1.0 if is_lower_better(evaluated[0].metric) else 1.0
    return sorted(evaluated, key=lambda each: -sign * each.value)


def _without_rows(run: Run) -> Evaluated | None:
    best = BestModel.of_manifest(run.manifest or {})
    if best is None or best.metric is None or best.value is None:
        return None
    return Evaluated(run=run, metric=best.metric, value=best.value, error=best.error, rows=None)


def _evaluated(run: Run) -> Evaluated | None:
    evaluated = _without_rows(run)
    return None if evaluated is None else dataclasses.replace(evaluated, rows=_read_rows(run))


def _read_rows(run: Run) -> list[dict[str, Any]] | None:
    path = run.path / _PREDICTIONS
    if not path.is_file():
        return None
    if (run.manifest or {}).get("outputs"):
        check_files(run.path, {_PREDICTIONS})
    rows = []
    with path.open(encoding="utf-8") as stream:
        for number, line in enumerate(stream, start=1):
            if number > _MOST_ROWS:
                return None
            try:
                row = json.loads(line)
            except ValueError:
                row = None
            if not isinstance(row, dict):
                raise InputError(f"{path}:{number}: is no JSON object; evaluate the run again")
            rows.append(row)
    return rows


def have_same_rows(one: Evaluated, other: Evaluated) -> bool | None:
    """Tell whether two runs are measured on the same rows with the same labels.

    Runs without predictions, such as pretraining, are compared by the data that they read.

    Returns:
        None if that is not known.
    """
    if one.rows is None or other.rows is None:
        data = _hashes_of_data(one.run)
        other_data = _hashes_of_data(other.run)
        if not data or not other_data:
            return None
        return data == other_data
    if len(one.rows) != len(other.rows):
        return False
    pairs = zip(one.rows, other.rows, strict=True)
    return all(_have_same_gold(row, other_row) for row, other_row in pairs)


def _hashes_of_data(run: Run) -> set[str]:
    """Return the SHA-256 of the records or evaluation rows that a run read."""
    inputs = (run.manifest or {}).get("inputs", [])
    return {item["sha256"] for item in inputs if item.get("key") in ("data", "eval")}


def _have_same_gold(row: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Tell whether rows have the same place and label; one may have been read without its id."""
    names: tuple[str, ...] = _GOLD
    if not (_has_id(row) and _has_id(other)):
        names = tuple(name for name in _GOLD if name != ID)
    return all(row.get(name) == other.get(name) for name in names)


def _has_id(row: Mapping[str, Any]) -> bool:
    """Tell whether a row has an id of its own, not one that only names its line."""
    return row.get(ID) not in (None, f"line {row.get('line')}")


def _table(
    best: Evaluated, others: Sequence[Evaluated], has_same_rows: Sequence[bool | None]
) -> TableSection:
    """Tabulate the metric of each run and, on the same rows, the rows that only one has right.

    Args:
        best: the best run.
        others: the other runs.
        has_same_rows: of each other run: `have_same_rows` with the best one.
    """
    rows: list[list[Any]] = [
        [f"{best.run.name} (best)", shown_measure(best.value, best.error), "", None, None, ""]
    ]
    words = {True: "the same", False: "others", None: "not known"}
    for other, is_same in zip(others, has_same_rows, strict=True):
        cells: list[Any] = [None, None, ""]
        changed = _compare(best, other) if is_same else None
        if changed is not None:
            cells = [changed.gained, changed.lost, changed.shown()]
        measured = shown_measure(other.value, other.error)
        rows.append([other.run.name, measured, words[is_same], *cells])
    return TableSection(
        title="Which run is best",
        columns=(
            ("run", "text"), (best.metric, "text"), ("rows", "text"),
            ("right with the best only", "count"), ("right with this only", "count"),
            ("difference of right rows", "text"),
        ),
        rows=rows,
    )  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class Changed:
    """The rows that two models predict right.

    The error of the difference is that of paired rows.
    """

    one: np.ndarray  # bool [rows], of the first model
    other: np.ndarray  # bool [rows], of the second

    @property
    def gained(self) -> int:
        return int((self.one & ~self.other).sum())

    @property
    def lost(self) -> int:
        return int((self.other & ~self.one).sum())

    def shown(self) -> str:
        """Write the difference with its error, and whether it is clear."""
        steps = self.one.astype(np.float64) - self.other
        difference = float(steps.mean())
        number = len(steps)
        error = float(steps.std(ddof=1) / np.sqrt(number)) if number > 1 else 0.0
        if not self.gained + self.lost:
            return "none"
        is_clear = abs(difference) > _CLEAR_ERRORS * error
        verdict = "clear" if is_clear else "may be chance"
        return f"{difference:+.3f} ± {error:.3f}, {verdict}"


def _compare(one: Evaluated, other: Evaluated) -> Changed | None:
    """Judge the rows of two runs; None if their task knows no right and wrong, or is not known."""
    settings = (one.run.manifest or {}).get("task")
    if not isinstance(settings, dict) or not one.rows or not other.rows:
        return None
    task = task_from_settings(settings, str(one.run.path))
    right = np.array([task.is_right(row) for row in one.rows], np.bool_)
    other_right = np.array([task.is_right(row) for row in other.rows], np.bool_)
    if not (right | other_right).any() or (right & other_right).all():
        return None
    return Changed(one=right, other=other_right)


def _changed_rows(best: Evaluated, other: Evaluated) -> Iterator[TableSection]:
    """List rows that the best run has right and the next one wrong, and the other way round."""
    changed = _compare(best, other)
    if changed is None:
        return
    assert best.rows is not None
    assert other.rows is not None
    for title, chosen in (
        (f"Right with {best.run.name}, wrong with {other.run.name}", changed.one & ~changed.other),
        (f"Right with {other.run.name}, wrong with {best.run.name}", changed.other & ~changed.one),
    ):
        places = np.flatnonzero(chosen).tolist()
        if not places:
            continue
        note = ""
        if len(places) > _MOST_CHANGED:
            note = f"{quantity(len(places), 'row')}; the first {_MOST_CHANGED}."
        yield TableSection(
            title=title,
            columns=(
                ("row", "text"), ("label", "text"), (best.run.name, "text"),
                (other.run.name, "text"),
            ),
            rows=[
                [
                    _name(best.rows[place]),
                    _shown(_label(best.rows[place])),
                    _shown(_prediction(best.rows[place])),
                    _shown(_prediction(other.rows[place])),
                ]
                for place in places[:_MOST_CHANGED]
            ],
            note=note,
        )  # fmt: skip


def _name(row: Mapping[str, Any]) -> str:
    """Name a row by its line, with its number and id if it has any; without a line, by its id."""
    name = str(row.get(ID, ""))
    line = row.get("line")
    if not isinstance(line, int):
        return name
    number = row.get("row")
    if not isinstance(number, int) or number == line:
        number = 0
    return f"line {Place(line, number, name)}"


def _label(row: Mapping[str, Any]) -> Any:
    names = ("label", "answers", "annotated_entities", "entities", "positive")
    return next((row[name] for name in names if name in row), "")


def _prediction(row: Mapping[str, Any]) -> Any:
    if "rank" in row:
        return f"rank {row['rank']}"
    return next((value for name, value in row.items() if name.startswith("predicted_")), "")


def _shown(value: Any) -> str:
    """Write a label or prediction: entities as `Rome (LOC)`, several of them with commas."""
    if isinstance(value, list):
        return ", ".join(map(_shown, value)) or "none"
    if isinstance(value, dict):
        text = value.get("text", f"{value.get('start')}-{value.get('end')}")
        return f"{text} ({value.get('label', '')})"
    return value if isinstance(value, str) else json.dumps(value)
