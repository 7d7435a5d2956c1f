"""Columns, length, batch, learning rate and epochs for fine-tuning a model on rows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from bert_tf.base.console import Console
from bert_tf.config.bert import BertConfig
from bert_tf.config.resolve import resolve
from bert_tf.config.section import build_section
from bert_tf.config.sections import FinetuneConfig
from bert_tf.data.tables.dialect import TableDialect, table_format_by_name
from bert_tf.data.tables.sketches import ColumnSketch, TableSketch, sketch_columns
from bert_tf.data.tables.tables import fixed_columns, read_table_blocks
from bert_tf.data.tables.text_files import file_encoding
from bert_tf.tasks.registry import TASKS, likely_columns

FIRST_ROWS = 4096
_WIDEST_EXAMPLE = 50
# By width: the rates that Turc et al. (2019) and Devlin et al. (2019) chose among for such sizes.
_RATES = ((256, 3e-4), (512, 1e-4), (768, 3e-5), (math.inf, 2e-5))
_COVERED = 0.99  # of the rows are read to their end
_LENGTH_MULTIPLE = 16
_LEAST_LENGTH = 32
_FEW_ROWS = 4000  # smaller sets are trained in smaller batches
_LONG = 256  # tokens from which the smaller batch saves memory
_SMALL_BATCH, _BATCH = 16, 32
_ENOUGH_STEPS = 300
_EPOCHS, _MOST_EPOCHS = 3, 20


def found_columns(path: str, dialect: TableDialect, given: Mapping[str, Any]) -> TableSketch | None:
    """Sketches the columns of a table; None for formats that name them, or have none.

    Raises InputError or UsageError if the file cannot be read.
    """
    if table_format_by_name(path) is None or fixed_columns(path):
        return None
    blocks = read_table_blocks(path, dialect=dialect, block_rows=FIRST_ROWS, max_rows=FIRST_ROWS)
    block = next(block for block in blocks if block.rows)
    return TableSketch(path=path, columns=sketch_columns(block.columns, block.rows), given=given)


def column_lines(table: TableSketch) -> Iterator[str]:
    width = max(len("column"), *(len(each.name) for each in table.columns))
    yield f"  {'column':{width}}  {'kind':6}  {'filled':>6}  {'different':>9}  example"
    for each in table.columns:
        example = each.example
        if len(example) > _WIDEST_EXAMPLE:
            example = example[: _WIDEST_EXAMPLE - 1] + "…"
        filled = each.filled / max(each.rows, 1)
        yield (
            f"  {each.name:{width}}  {each.kind:6}  {filled:>6.0%}  {each.distinct:>9,}  {example}"
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Draft:
    """Values and comments by key, in the order of writing; the user has set the keys in `given`."""

    options: type[FinetuneConfig]
    values: dict[str, Any]
    given: frozenset[str]
    reasons: dict[str, str]

    def config(self, **changes: Any) -> FinetuneConfig:
        """The section, with changes to keys that the user has not set."""
        free = {key: value for key, value in changes.items() if key not in self.given}
        return build_section(self.options, {**self.values, **free})


def draft_config(
    task: str,
    source: str,
    *,
    init: str,
    run: str,
    assignments: tuple[str, ...],
    console: Console,
) -> Draft:
    """Finds encoding and columns of a file of labeled rows, and shows them on the console.

    Raises InputError or UsageError if the file cannot be read, or lacks a column.
    """
    options = TASKS[task].options
    required = {"task": task, "train": source, "init": init, "output": run}
    base = resolve(options, assignments=assignments, flags=required)
    keys = [text.partition("=")[0].partition(".")[2] for text in assignments]
    given = {key: value for key, value in base.as_dict().items() if key in keys}
    draft = Draft(options=options, values={**required, **given}, given=frozenset(given), reasons={})
    encoding = str(given.get("encoding") or file_encoding(source) or "utf-8")
    if encoding not in ("utf-8", given.get("encoding")):
        console.info(
            f"  encoding: not UTF-8, read as {encoding}; check that the examples are right"
        )
        draft.values["encoding"] = encoding
        draft.reasons["encoding"] = "a guess: the file is not UTF-8"
    table = found_columns(source, TableDialect.of(draft.config()), given)
    if table is not None:
        console.info(*column_lines(table))
        found = likely_columns(task, table)
        draft.values.update({key: found[key] for key in found if key not in given})
        draft.reasons.update(_reasons(found, table.columns))
    return draft


def _reasons(found: Mapping[str, Any], columns: Iterable[ColumnSketch]) -> dict[str, str]:
    sketches = {each.name: each for each in columns}
    return {
        key: f"{each.distinct:,} different values"
        if each.words < 2
        else f"{each.words:.0f} words on average"
        for key, name in found.items()
        if isinstance(name, str) and (each := sketches.get(name)) is not None
    }


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recipe:
    max_seq_length: int
    batch_size: int
    learning_rate: float
    epochs: int
    sequences: int

    @property
    def settings(self) -> dict[str, Any]:
        """The values of the config, by key."""
        names = ("max_seq_length", "batch_size", "learning_rate", "epochs")
        return {name: getattr(self, name) for name in names}

    @property
    def steps(self) -> int:
        return self.steps_of(batch_size=self.batch_size, epochs=self.epochs)

    def steps_of(self, *, batch_size: int, epochs: float) -> int:
        return max(1, round(math.ceil(self.sequences / batch_size) * epochs))


def choose_length(
    lengths: np.ndarray, *, in_windows: bool, default: int, longest_of_model: int
) -> int:
    """Returns the tokens of a sequence that 99% of the rows fit in.

    `lengths`, int [n], include [CLS] and [SEP]. Texts split into windows get the task's `default`.
    """
    if in_windows:
        return min(default, longest_of_model)
    needed = int(np.quantile(lengths, _COVERED, method="higher"))
    rounded = -(-needed // _LENGTH_MULTIPLE) * _LENGTH_MULTIPLE
    return min(max(_LEAST_LENGTH, rounded), longest_of_model)


def choose_recipe(
    model: BertConfig, *, max_seq_length: int, rows: float, sequences_per_row: float
) -> Recipe:
    """Chooses batch size, learning rate and epochs.

    Few rows get small batches and more epochs (Mosbach et al. 2021), for about 300 steps.
    """
    is_small = rows < _FEW_ROWS or max_seq_length > _LONG
    batch_size = _SMALL_BATCH if is_small else _BATCH
    sequences = max(1, round(rows * sequences_per_row))
    steps_per_epoch = math.ceil(sequences / batch_size)
    epochs = min(max(_EPOCHS, math.ceil(_ENOUGH_STEPS / steps_per_epoch)), _MOST_EPOCHS)
    return Recipe(
        max_seq_length=max_seq_length,
        batch_size=batch_size,
        learning_rate=next(rate for width, rate in _RATES if model.hidden_size <= width),
        epochs=epochs,
        sequences=sequences,
    )
