"""The sections of `evaluate` and `score`."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from bert_tf.base.errors import UsageError
from bert_tf.config.registries import AUTO, FLOAT32, PRECISIONS, REGISTRIES, EngineChoices
from bert_tf.config.section import (
    NonNegativeInt,
    PositiveFraction,
    PositiveInt,
    advanced,
    flag_text,
    option,
    optional,
)
from bert_tf.config.sections.tables import COLUMN, BatchTokens, TableSection, batch_tokens_option

BEST, ALL = "best", "all"
_SCORES = re.compile(rf"{BEST}|{ALL}|top-([1-9][0-9]{{0,3}})")


def model_column(content: str) -> Any:
    """The key of a column; by default the one that the model was trained on."""
    return optional(f"{content} (default: the model's)")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ColumnsSection(TableSection):
    """Columns of the rows to read; the model's own where not given."""

    text_column: str | None = model_column("column of the text")
    text_pair_column: str | None = model_column("column of the second text")
    question_column: str | None = model_column("column of the question")
    context_column: str | None = model_column("column of the context")
    tokens_column: str | None = model_column("column of the words; in CoNLL files a column number")
    columns: tuple[str, ...] = option(
        "column of any model input, as INPUT=COLUMN; repeatable", (), flag="--column"
    )
    abstain_below: PositiveFraction | None = optional(
        "leave predictions with a lower probability empty (no decision)"
    )
    choices_column: tuple[str, ...] | None = model_column(
        "column with the list of choices, or of one choice; repeatable"
    )
    engine: str = option(
        "inference engine for exported models (auto: the first that is installed and supports "
        "the model; score benchmarks several for a second if there are many rows)",
        AUTO,
        choices=EngineChoices(),
    )
    batch_tokens: BatchTokens = batch_tokens_option()

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        for entry in self.columns:
            if not all(entry.partition("=")):
                yield f"columns: expected INPUT=COLUMN (text=body), got {entry!r}"

    def check_installed(self) -> None:
        if self.engine != AUTO:
            REGISTRIES.engines[self.engine].check_installed()


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluateConfig(ColumnsSection):
    """Evaluates a fine-tuned run or an exported model on labeled rows."""

    section_name: ClassVar[str] = "evaluate"

    model: str = option("run directory or exported model", reads="model")
    data: str = option(
        "labeled rows, as for training: CSV, TSV, JSONL, Parquet, CoNLL columns or SQuAD JSON",
        reads="table",
    )
    output: str = option("output directory for metrics.json and predictions", writes="folder")
    label_column: tuple[str, ...] | None = model_column(
        "column of the label; repeatable if there is one column per label"
    )
    tag_column: str | None = model_column("column of the tags")
    entities_column: str | None = model_column("column of the entities")
    sentence_column: str | None = model_column(
        "column of the sentence, for tables with one word per row"
    )
    answer_column: str | None = model_column("column of the answer text")
    precision: str = option(
        "numeric precision of the inference engine; other than float32, predictions are also "
        "compared with float32",
        FLOAT32,
        choices=PRECISIONS,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScoreConfig(ColumnsSection):
    """Adds predictions as columns to every input row, in input order and with all other columns
    unchanged.
    """

    section_name: ClassVar[str] = "score"

    model: str = option("exported model (from bert-pipeline export)", reads="model")
    input: tuple[str, ...] = option(
        "rows to score: path or quoted glob; repeatable", reads="tables"
    )
    output: str = option("output file (the extension sets the format) or directory")
    extra_columns: tuple[str, ...] = option(
        "additional prediction column of the model's task; repeatable", (), flag="--extra-column"
    )
    scores: str = option(
        "probabilities to add: best (of the prediction), all (of every label or choice) or "
        "top-N (of the N most likely, such as top-3)",
        BEST,
    )
    rename: tuple[str, ...] = option("rename an added column, as NAME=COLUMN; repeatable", ())
    escape_formulas: bool = option(
        "in CSV and TSV, put an apostrophe before cells that a spreadsheet would run as a formula",
        False,
    )
    dry_run: bool = option(
        "read the first rows of each input and show the output columns, without writing", False
    )
    precision: str = option(
        "numeric precision of the inference engine (auto: int8 if exported with it, else "
        "bfloat16 if processor and engine support it; bfloat16 changes the third or fourth "
        "decimal of probabilities)",
        AUTO,
        choices=PRECISIONS,
    )
    limit: NonNegativeInt = option("score only the first rows of each input (0: all)", 0)
    block_rows: PositiveInt = advanced(
        "rows to read, sort by length and write at once", 8192, affects_output=False
    )

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        for entry in self.rename:
            if not all(entry.partition("=")):
                yield f"rename: expected NAME=COLUMN, got {entry!r}"
        try:
            top_of(self.scores)
        except ValueError as error:
            yield f"scores: {error}"


def top_of(scores: str) -> int | None:
    """N of `top-N`, None for `best` and `all`; raises ValueError for others."""
    found = _SCORES.fullmatch(scores)
    if found is None:
        raise ValueError(f"expected best, all or top-N (top-3), got {scores!r}")
    return None if found[1] is None else int(found[1])


def given_columns(
    config: EvaluateConfig | ScoreConfig, read: Sequence[str], *, lists: Sequence[str] = ()
) -> dict[str, Any]:
    """Returns the columns that a config names, by a flag of their own or by `--column`.

    `read` are the inputs of the model (`text`, `label`, …); `lists` those that may span several
    columns, returned as tuples. Raises UsageError for other inputs, or two columns for one.
    """
    named: dict[str, list[str]] = {}
    for name, column, flag in _named_columns(config):
        if name not in read:
            raise UsageError(
                f"{flag} has no meaning for {config.model}: its model reads {' and '.join(read)}"
            )
        named.setdefault(name, []).append(column)
        if len(named[name]) > 1 and name not in lists:
            raise UsageError(
                f"{flag}: the column of {name} is {named[name][0]!r} already; name it once"
            )
    return {
        name: tuple(columns) if name in lists else columns[0] for name, columns in named.items()
    }


def _named_columns(config: EvaluateConfig | ScoreConfig) -> Iterator[tuple[str, str, str]]:
    for field in dataclasses.fields(config):
        columns = getattr(config, field.name)
        if field.name.endswith(COLUMN) and columns is not None:
            name = field.name.removesuffix(COLUMN)
            for column in (columns,) if isinstance(columns, str) else columns:
                yield name, column, flag_text(field)
    for entry in config.columns:
        name, _, column = entry.partition("=")
        yield name, column, f"--column {entry}"
