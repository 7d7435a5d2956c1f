"""The sections of jobs that run a model over tables: evaluate, score, embed, search, summarize."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from bert_tf.base.errors import UsageError, check_packages
from bert_tf.config.registries import AUTO, FLOAT32, PRECISIONS, REGISTRIES, EngineChoices
from bert_tf.config.section import (
    Fraction,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFraction,
    PositiveInt,
    advanced,
    flag_text,
    option,
    optional,
    repeatable,
)
from bert_tf.config.sections.data import SENTENCE_SPLITTERS, check_splitter_installed
from bert_tf.config.sections.tables import (
    COLUMN,
    ID_COLUMN,
    BatchTokens,
    TableSection,
    batch_tokens_option,
    min_ceiling_option,
)
from bert_tf.config.values import Bounds

POOLINGS = ("mean", "cls", "max")
SIMILARITIES = ("cosine", "dot")
DEFAULT_SENTENCES = 3


def pooling_option() -> Any:
    """Declare the key for the pooling of tokens."""
    return optional(
        "pooling of token states into a text vector (default: from a sentence-transformers folder, "
        "otherwise mean)",
        choices=POOLINGS,
    )


def normalize_option() -> Any:
    """Declare the key for the normalization of vectors."""
    return optional(
        "divide vectors by their Euclidean norm (default: from a sentence-transformers folder, "
        "otherwise no)"
    )


class TextVectorsSection(TableSection):
    """How vectors are made of the texts of tables."""

    text_column: str | None = optional(
        "column of the text (default: the column that the model was trained on, or text)"
    )
    pooling: str | None = pooling_option()
    normalize: bool | None = normalize_option()
    max_seq_length: Annotated[int, Bounds(minimum=3)] | None = optional(
        "maximum tokens per text, including [CLS] and [SEP] (default: the model's)"
    )
    layers: tuple[int, ...] = option(
        "layer to take hidden states from: 1 is the first, -1 the last, 0 the embeddings; "
        "repeatable",
        (-1,),
    )
    layer_combination: str = option(
        "combination of several layers: mean or concatenation", choices=("mean", "concat")
    )
    batch_tokens: BatchTokens = batch_tokens_option()
    block_rows: PositiveInt = advanced(
        "rows to read, sort by length and write at once", 8192, affects_output=False
    )

    def faults(self) -> Iterator[str]:
        if not self.layers:
            yield "layers: gives no layer; -1 is the last"


class EmbedConfig(TextVectorsSection, section_name="embed"):
    """Writes an embedding of every input row's text, in input order, or with --tokens one for
    each token.
    """

    model: str = option("model directory, run, HuggingFace folder or exported model", reads="model")
    input: tuple[str, ...] = option(
        "rows with a text: path or quoted glob; repeatable", reads="tables"
    )
    output: str = option("file to write: .parquet, .npy or .jsonl", writes="file")
    tokens: bool = option(
        "write one vector per token, with the token and its character offsets, instead of one "
        "per text",
        False,
    )
    prompt_name: str | None = optional(
        "sentence-transformers prompt to prepend to each text: query, document, … (default: the "
        "folder's)"
    )
    limit: NonNegativeInt = option("embed only the first rows of each input (0: all)", 0)

    def faults(self) -> Iterator[str]:
        if self.tokens and self.output.endswith(".npy"):
            yield (
                "output: .npy holds one vector per row; use .parquet or .jsonl for token vectors"
            )


class SearchConfig(TextVectorsSection, section_name="search"):
    """Finds the nearest texts of a corpus for every query, by the embeddings of a model."""

    queries: str = option(
        "query rows with a text, or vectors from embed (.npy, .parquet)", reads="table"
    )
    corpus: str = option("rows or vectors to search, in the same formats", reads="table")
    model: str | None = optional(
        "model directory, run, HuggingFace folder or exported model; required if queries or "
        "corpus are texts",
        common=True,
        reads="model",
    )
    output: str = option("file to write: .jsonl or .csv", writes="file")
    top_k: PositiveInt = option("results per query", 10)
    similarity: str = option(
        "similarity of vectors: cosine, or dot product without normalization", choices=SIMILARITIES
    )
    index: str = option(
        "exact (compare every query with every vector), hnsw (approximate) or auto (exact up to "
        "search.exact_pairs)",
        choices=("auto", "exact", "hnsw"),
    )
    exact_pairs: NonNegativeFloat = advanced(
        "maximum number of query-vector pairs for an exact search with index=auto", 1e9
    )
    recall_queries: PositiveInt = advanced(
        "queries used to measure the recall of an approximate index", 100
    )

    def check_installed(self) -> None:
        if self.index == "hnsw":
            check_index_installed()


def check_index_installed() -> None:
    """Raise UsageError if the library of an approximate index is missing."""
    check_packages("--index hnsw", ["faiss"], extra="search", instead="take --index exact")


class SummarizeConfig(TextVectorsSection, section_name="summarize"):
    """Adds an extractive summary to every input row, in input order: the sentences most similar to
    the document and different from each other, with their positions.
    """

    model: str = option(
        "model for the sentence vectors: model directory, run, HuggingFace folder or exported "
        "model",
        reads="model",
    )
    input: tuple[str, ...] = option(
        "rows with a document: path or quoted glob; repeatable", reads="tables"
    )
    output: str = option("output file (the extension sets the format) or directory")
    sentences: PositiveInt | None = optional(
        f"maximum sentences per summary (default: {DEFAULT_SENTENCES}, unless ratio is given)"
    )
    ratio: PositiveFraction | None = optional(
        "fraction of a document's sentences to keep, rounded up, instead of a number"
    )
    mmr_lambda: Fraction = option(
        "maximal marginal relevance: 1 selects the sentences most similar to the document, "
        "lower values prefer sentences that differ from those already selected",
        0.7,
    )
    sentence_splitter: str = option(
        "sentence splitter for paragraphs: rules (any language), sentencex (Wikimedia's "
        "library, for sentence_language), none (one sentence per line)",
        "rules",
        choices=SENTENCE_SPLITTERS,
    )
    sentence_language: str = option("language code of the text for sentencex", "en")
    limit: NonNegativeInt = option("summarize only the first rows of each input (0: all)", 0)

    def check_installed(self) -> None:
        check_splitter_installed(self.sentence_splitter)

    def faults(self) -> Iterator[str]:
        if self.sentences is not None and self.ratio is not None:
            yield "ratio: give either ratio or sentences"


BEST = "best"
ALL = "all"
_SCORES = re.compile(rf"{BEST}|{ALL}|top-([1-9][0-9]{{0,3}})")


def model_column(content: str) -> Any:
    """Declare the key of a column, by default the one that the model was trained on."""
    return optional(f"{content} (default: the model's)")


class ColumnsSection(TableSection):
    """Columns, engine and abstention, shared by `evaluate` and `score`."""

    text_column: str | None = model_column("column of the text")
    text_pair_column: str | None = model_column("column of the second text")
    question_column: str | None = model_column("column of the question")
    context_column: str | None = model_column("column of the context")
    tokens_column: str | None = model_column("column of the words; in CoNLL files a column number")
    columns: tuple[str, ...] = repeatable(
        "column of any model input, as INPUT=COLUMN; repeatable", flag="--column"
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
        choices=EngineChoices(),
    )
    batch_tokens: BatchTokens = batch_tokens_option()

    def faults(self) -> Iterator[str]:
        for entry in self.columns:
            if not all(entry.partition("=")):  # name, sign and column, none empty
                yield f"columns: expected INPUT=COLUMN (text=body), got {entry!r}"

    def check_installed(self) -> None:
        if self.engine != AUTO:
            REGISTRIES.engines[self.engine].check_installed()


class EvaluateConfig(ColumnsSection, section_name="evaluate"):
    """Evaluates a fine-tuned run or an exported model on labeled rows."""

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
    min_ceiling: Fraction = min_ceiling_option()
    precision: str = option(
        "numeric precision of the inference engine; other than float32, predictions are also "
        "compared with float32",
        FLOAT32,
        choices=PRECISIONS,
    )


_LABEL_NEXT_ENDINGS = (".csv", ".tsv", ".jsonl")


class ScoreConfig(ColumnsSection, section_name="score"):
    """Adds predictions as columns to every input row, in input order and with all other columns
    unchanged.
    """

    model: str = option("exported model (from bert-pipeline export)", reads="model")
    input: tuple[str, ...] = option(
        "rows to score: path or quoted glob; repeatable", reads="tables"
    )
    output: str = option("output file (the extension sets the format) or directory")
    extra_columns: tuple[str, ...] = repeatable(
        "additional prediction column of the model's task; repeatable", flag="--extra-column"
    )
    scores: str = option(
        "probabilities to add: best (of the prediction), all (of every label or choice) or "
        "top-N (of the N most likely, such as top-3)",
        BEST,
    )
    target_accuracy: Annotated[float, Bounds(above=0.0, below=1.0)] | None = optional(
        "leave as few predictions empty as it takes for this accuracy of the others, by the "
        "evaluation rows of the model, with 95% confidence"
    )
    abstain_far: Annotated[float, Bounds(above=0.0, below=1.0)] | None = optional(
        "leave predictions empty for texts that are farther from the training rows than this share "
        "of the evaluation rows (0.99), with the reason in the column abstained"
    )
    coverage: Annotated[float, Bounds(above=0.0, below=1.0)] | None = optional(
        "add the set of labels that holds the right one in this share of the rows (conformal "
        "prediction by the evaluation rows of the model)"
    )
    coverage_by_label: bool = option(
        "with --coverage: in this share of the rows of every label", False
    )
    label_next: PositiveInt | None = optional(
        "write only this many rows, those to label next: least certain and unlike each other"
    )
    explain: NonNegativeInt = option(
        "rows whose prediction is explained by the share of each word (0: none)", 0
    )
    explain_rows: str = option(
        "rows to explain: the first ones, or the least certain ones",
        choices=("first", "uncertain"),
    )
    allow_drift: bool = option(
        "score although the engine gives other scores for the probe rows of the model than those "
        "of its export, with a warning",
        False,
        affects_output=False,
    )
    fail_on_drift: bool = option(
        "exit with 1, after the outputs are written, if the rows of a file are not like the "
        "training rows of the model",
        False,
        affects_output=False,
    )
    rename: tuple[str, ...] = repeatable("rename an added column, as NAME=COLUMN; repeatable")
    escape_formulas: bool = option(
        "in CSV and TSV, put an apostrophe before cells that a spreadsheet would run as a formula",
        False,
    )
    dry_run: bool = option(
        "read the first rows of each input and show the output columns, without writing", False
    )
    keep_rejected: bool = option(
        "keep rows that are rejected, in their places: with empty predictions and the reason in "
        "the column rejected, so that there are as many rows as in the input",
        False,
    )
    update: bool = option(
        "for schedulers, with a folder as output: score the inputs that are new or have changed "
        "since the last run, resume one that was killed, and exit with 0 if there is nothing to do",
        False,
        affects_output=False,
    )
    precision: str = option(
        "numeric precision of the inference engine (auto: int8 if exported with it, else "
        "bfloat16 if processor and engine support it; bfloat16 changes the third or fourth "
        "decimal of probabilities)",
        choices=PRECISIONS,
    )
    limit: NonNegativeInt = option("score only the first rows of each input (0: all)", 0)
    block_rows: PositiveInt = advanced(
        "rows to read, sort by length and write at once", 8192, affects_output=False
    )

    def faults(self) -> Iterator[str]:
        for entry in self.rename:
            if not all(entry.partition("=")):  # name, sign and column, none empty
                yield f"rename: expected NAME=COLUMN, got {entry!r}"
        if self.target_accuracy is not None and self.abstain_below is not None:
            yield "target_accuracy: chooses the value of abstain_below; give one of them"
        if self.label_next is not None and not self.output.endswith(_LABEL_NEXT_ENDINGS):
            yield (
                "label_next: chooses among the rows of all inputs and writes them to one file; "
                f"give output a name that ends in {', '.join(_LABEL_NEXT_ENDINGS)}"
            )
        if self.label_next is not None and self.explain:
            yield "explain: explains rows of a whole file; give it without label_next"
        if self.coverage_by_label and self.coverage is None:
            yield "coverage_by_label: says how to reach coverage; give that, too"
        try:
            top_of(self.scores)
        except ValueError as error:
            yield f"scores: {error}"


def top_of(scores: str) -> int | None:
    """Return N of `top-N`; None for `best` and `all`.

    Raises:
        ValueError: it is something else.
    """
    match = _SCORES.fullmatch(scores)
    if match is None:
        raise ValueError(f"expected best, all or top-N (top-3), got {scores!r}")
    return None if match[1] is None else int(match[1])


def given_columns(
    config: EvaluateConfig | ScoreConfig, read: Sequence[str], *, lists: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the columns that a config names, by a flag of their own or by `--column`.

    Args:
        config: config of the job.
        read: inputs of the model (`text`, `label`, …).
        lists: inputs that may span several columns, which are returned as tuples.

    Raises:
        UsageError: a column is named for an input that the model does not read, or two columns
            are named for an input that reads one.
    """
    named: dict[str, list[str]] = {}
    for name, column, flag in _named_columns(config):
        if name not in read:
            raise UsageError(
                f"{flag} does not apply to {config.model}: its model reads {' and '.join(read)}"
            )
        named.setdefault(name, []).append(column)
        if len(named[name]) > 1 and name not in lists:
            raise UsageError(
                f"{flag}: the column of {name} is {named[name][0]!r} already; give it once"
            )
    return {
        name: tuple(columns) if name in lists else columns[0] for name, columns in named.items()
    }


def _named_columns(config: EvaluateConfig | ScoreConfig) -> Iterator[tuple[str, str, str]]:
    """Yield input, column and flag of each column that a config names."""
    for field in dataclasses.fields(config):
        columns = getattr(config, field.name)
        if field.name == ID_COLUMN:
            continue
        if field.name.endswith(COLUMN) and columns is not None:
            name = field.name.removesuffix(COLUMN)
            several = (columns,) if isinstance(columns, str) else columns
            for column in several:
                yield name, column, flag_text(field)
    for entry in config.columns:
        name, _, column = entry.partition("=")
        yield name, column, f"--column {entry}"
