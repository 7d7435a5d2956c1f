"""The part of a config that a file's name, bytes and columns decide, without reading all of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from bert_tf.base.console import Console
from bert_tf.config.resolve import resolve
from bert_tf.config.section import build_section
from bert_tf.config.sections import FinetuneConfig
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.file_encoding import file_encoding
from bert_tf.data.tables.sketches import ColumnSketch
from bert_tf.tasks.registry import TASKS, likely_columns
from pipeline.proposal.found_columns import column_lines, found_columns


@dataclasses.dataclass(frozen=True, kw_only=True)
class Draft:
    """A config as far as it is known.

    Attributes:
        options: the task's section.
        values: by key, in the order in which the file has them.
        given: keys that the user set.
        reasons: a comment by key.
    """

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
    """Finds encoding and columns of a file of labeled rows.

    Args:
        task: to fine-tune for.
        source: the file.
        init: model to start from.
        run: run directory that the config names.
        assignments: `finetune.key=value` texts.
        console: where the columns are shown.

    Raises:
        InputError, UsageError: the file cannot be read, or lacks a column.
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
        for line in column_lines(table):
            console.info(line)
        found = likely_columns(task, table)
        draft.values.update({key: found[key] for key in found if key not in given})
        draft.reasons.update(_reasons(found, table.columns))
    return draft


def _reasons(found: Mapping[str, Any], columns: Iterable[ColumnSketch]) -> dict[str, str]:
    """What is in the columns that were found."""
    sketches = {each.name: each for each in columns}
    return {
        key: f"{each.distinct:,} different values"
        if each.words < 2
        else f"{each.words:.0f} words on average"
        for key, name in found.items()
        if isinstance(name, str) and (each := sketches.get(name)) is not None
    }
