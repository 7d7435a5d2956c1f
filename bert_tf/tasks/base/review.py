"""A look at the rows that a task has read: the first of them, and the findings of detectors.

Every command that reads labeled rows ends its reading here. So a user sees the rows as they were
understood before an hour of training, and readers need not call the detectors.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from bert_tf.base.console import Console
from bert_tf.config.sections.tables import NO_IDS
from bert_tf.data.tables.detectors.rows import ROW_DETECTORS
from bert_tf.data.tables.dialect import PLAIN, TableDialect, table_format_by_name
from bert_tf.data.tables.file_rows import FileRows
from bert_tf.data.tables.judged import Finding, ReadValues, first_values, judge, report
from bert_tf.data.tables.repeated_ids import RepeatedIds, repeated_ids_warning
from bert_tf.data.tables.tables import first_rows, fixed_columns
from bert_tf.tasks.base.task import Task


def read_and_review(
    task: Task, path: str, console: Console, *, dialect: TableDialect = PLAIN
) -> Any:
    """Read the rows to measure a task on as `Task.read` does, and look at them.

    Raises:
        InputError, UsageError: as of `Task.read` and `review_rows`.
    """
    source = task.read(path, console, dialect=dialect)
    review_rows(task, source, console, dialect=dialect)
    return source


def review_rows(
    task: Task, source: Any, console: Console, *, dialect: TableDialect = PLAIN
) -> None:
    """Show the first rows and doubts about all; raise if the user cannot have meant such rows.

    Args:
        source: rows as the task has read them.
        dialect: the form of their file.

    Raises:
        InputError, UsageError: see `ROW_DETECTORS`.
    """
    values, findings = rows_judged(task, source, dialect=dialect)
    console.info(*first_values(values))
    warn_of_repeated_ids(source, dialect, console)
    report(values.source, findings, console)


def warn_of_repeated_ids(source: FileRows, dialect: TableDialect, console: Console) -> None:
    """Warn of ids that several rows have, if the user has named their column.

    Args:
        source: the rows.
        dialect: the form of their file.
        console: shows the warning.
    """
    if not source.places.id_of_line or dialect.id_column in (None, NO_IDS):
        return
    repeated = RepeatedIds()
    repeated.add(place.id for place in source.all_places)
    if repeated.count:
        console.warn(
            repeated_ids_warning(source.source, dialect.id_column, repeated.first, repeated.count)
        )


def rows_judged(
    task: Task, source: Any, *, dialect: TableDialect = PLAIN
) -> tuple[ReadValues, list[Finding]]:
    """Return the rows that a task has read, with the other columns, and their oddities."""
    values = task.read_values(source)
    block = None
    if table_format_by_name(values.source) is not None and not fixed_columns(values.source):
        block = first_rows(values.source, dialect)
    if block is not None:
        names = [name for name in block.columns if name not in values.used]
        others = {name: [row.get(name) for row in block.rows] for name in names}
        values = dataclasses.replace(values, others=others)
    return values, list(judge(values, ROW_DETECTORS))
