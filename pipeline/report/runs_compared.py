"""Which of several runs is best, whether that may be chance, and which rows changed."""

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
# Differences of fewer standard errors are within what other rows would give.
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
    """Compare runs by the metric that chose their best models; [] if they share none.

    Raises InputError for damaged predictions.
    """
    evaluated = [each for each in map(_evaluated, runs) if each is not None]
    if len(evaluated) < 2 or len({each.metric for each in evaluated}) > 1:
        return []
    sign = -1.0 if is_lower_better(evaluated[0].metric) else 1.0
    ranked = sorted(evaluated, key=lambda each: -sign * each.value)
    best, *others = ranked
    value = shown_measure(best.value, best.error)
    lines = [f"{best.run.name} is the best by {best.metric}: {value}."]
    has_same_rows = [have_same_rows(best, each) for each in others]
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
    same = [each for each, is_same in zip(others, has_same_rows, strict=True) if is_same]
    if same:
        content += list(_changed_rows(best, same[0]))
    return content


def best_name(runs: Sequence[Run]) -> str | None:
    """Return the name of the run with the best metric; None if they share no metric."""
    content = [each for each in map(_without_rows, runs) if each is not None]
    if len(content) < 2 or len({each.metric for each in content}) > 1:
        return None
    sign = -1.0 if is_lower_better(content[0].metric) else 1.0
    return max(content, key=lambda each: sign * each.value).run.name


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
    """Say whether two runs are measured on the same rows with the same labels.

    None if that is not known. Pretraining is compared by the records that were read.
    """
    if one.rows is None or other.rows is None:
        inputs = [
            {item["sha256"] for item in (each.run.manifest or {}).get("inputs", [])
             if item.get("key") in ("data", "eval")}
            for each in (one, other)
        ]  # fmt: skip
        if not all(inputs):
            return None
        return inputs[0] == inputs[1]
    if len(one.rows) != len(other.rows):
        return False
    return all(_same_gold(row, also) for row, also in zip(one.rows, other.rows, strict=True))


def _same_gold(row: Mapping[str, Any], also: Mapping[str, Any]) -> bool:
    """Whether rows have the same place and label; one may have been read without its id."""
    have_ids = all(each.get(ID) not in (None, f"line {each.get('line')}") for each in (row, also))
    names = _GOLD if have_ids else [name for name in _GOLD if name != ID]
    return all(row.get(name) == also.get(name) for name in names)


def _table(
    best: Evaluated, others: Sequence[Evaluated], has_same_rows: Sequence[bool | None]
) -> TableSection:
    """Tabulate the metric of each run, and on the same rows, how many are right with only one."""
    rows: list[list[Any]] = [
        [f"{best.run.name} (best)", shown_measure(best.value, best.error), "", None, None, ""]
    ]
    words = {True: "the same", False: "others", None: "not known"}
    for each, is_same in zip(others, has_same_rows, strict=True):
        cells: list[Any] = [None, None, ""]
        changed = _compare(best, each) if is_same else None
        if changed is not None:
            cells = [changed.gained, changed.lost, changed.shown()]
        measured = shown_measure(each.value, each.error)
        rows.append([each.run.name, measured, words[is_same], *cells])
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
    """Rows that only one of two models predicts right: bool [rows] of each.

    The error of the difference is that of paired rows.
    """

    one: np.ndarray
    other: np.ndarray

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
        how = "clear" if is_clear else "may be chance"
        return f"{difference:+.3f} ± {error:.3f}, {how}"


def _compare(one: Evaluated, other: Evaluated) -> Changed | None:
    """Judge the rows of two runs; None if their task knows no right and wrong, or is not known."""
    settings = (one.run.manifest or {}).get("task")
    if not isinstance(settings, dict) or not one.rows or not other.rows:
        return None
    task = task_from_settings(settings, str(one.run.path))
    right = [
        np.array([task.is_right(row) for row in each.rows or ()], np.bool_) for each in (one, other)
    ]
    if not (right[0].any() or right[1].any()) or (right[0] & right[1]).all():
        return None
    return Changed(one=right[0], other=right[1])


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
        more = len(places) - _MOST_CHANGED
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
            note=f"{quantity(len(places), 'row')}; the first {_MOST_CHANGED}." if more > 0 else "",
        )  # fmt: skip


def _name(row: Mapping[str, Any]) -> str:
    """Name a row by its line, beside which row and id stand if there are any, or by its id."""
    name = str(row.get(ID, ""))
    line, number = row.get("line"), row.get("row")
    if not isinstance(line, int):
        return name
    return f"line {Place(line, number if isinstance(number, int) and number != line else 0, name)}"


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
