"""The sections of `evaluate` and `score`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

from bert_tf.base.errors import UsageError
from bert_tf.config.section import option
from bert_tf.config.sections.tables import TableSection
from bert_tf.engines.registry import AUTO, EngineChoices


@dataclasses.dataclass(frozen=True, kw_only=True)
class ColumnsSection(TableSection):
    """Columns of the rows to read; what is not given is taken from the model."""

    text_column: str | None = option("column of the text (default: the model's)", default=None)
    text_pair_column: str | None = option(
        "column of the second text (default: the model's)", default=None
    )
    question_column: str | None = option(
        "column of the question (default: the model's)", default=None
    )
    context_column: str | None = option(
        "column of the context (default: the model's)", default=None
    )
    abstain_below: float | None = option(
        "leave predicted_label empty (no decision) where its probability is below this",
        default=None,
        above=0.0,
        maximum=1.0,
    )
    choices_column: tuple[str, ...] | None = option(
        "column of the list of choices, or each choice's; repeatable (default: the model's)",
        default=None,
    )
    engine: str = option(
        "inference engine for exported models (auto: the first that is installed and can run it)",
        default=AUTO,
        choices=EngineChoices(),
    )
    batch_tokens: int = option(
        "tokens per batch, padding included",
        default=2048,
        minimum=1,
        maximum=100_000_000,
        advanced=True,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluateConfig(ColumnsSection):
    """Evaluates a fine-tuned model on labeled rows."""

    section_name: ClassVar[str] = "evaluate"

    model: str = option("run directory or exported model")
    data: str = option(
        "labeled rows, as for training: CSV, TSV, JSONL, Parquet, CoNLL columns or SQuAD JSON"
    )
    output: str = option("directory to write metrics.json and predictions to")
    label_column: str | None = option("column of the label (default: the model's)", default=None)
    tokens_column: str | None = option("column of the words (default: the model's)", default=None)
    tag_column: str | None = option("column of the tags (default: the model's)", default=None)
    entities_column: str | None = option(
        "column of the entities (default: the model's)", default=None
    )
    answer_column: str | None = option(
        "column of the answer's text (default: the model's)", default=None
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScoreConfig(ColumnsSection):
    """Adds a model's predictions to every row of CSV, TSV, JSONL or Parquet files."""

    section_name: ClassVar[str] = "score"

    model: str = option("exported SavedModel")
    input: tuple[str, ...] = option("rows to score: a path or a quoted glob; repeatable")
    output: str = option("file, whose extension sets the format, or directory to write")
    extra_columns: tuple[str, ...] = option(
        "a further column of predictions, of those that the model's task offers; repeatable",
        default=(),
        flag="--extra-column",
    )
    limit: int = option("score only the first rows of each input (0: all)", default=0, minimum=0)
    block_rows: int = option(
        "rows that are read, sorted by length and written at once",
        default=8192,
        minimum=1,
        advanced=True,
    )


def check_columns_are_read(config: EvaluateConfig | ScoreConfig, read: Sequence[str]) -> None:
    """Refuses columns that the model has no use for.

    Args:
        config: may name columns.
        read: what the model reads (`text`, `label`, …).

    Raises:
        UsageError: a column of something else is named.
    """
    for field in dataclasses.fields(config):
        name = field.name.removesuffix("_column")
        if name in (field.name, *read) or getattr(config, field.name) is None:
            continue
        raise UsageError(
            f"--{field.name.replace('_', '-')} has no meaning for {config.model}: "
            f"its model reads {' and '.join(read)}"
        )
