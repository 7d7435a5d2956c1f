"""The sections of `embed`, `search` and `summarize`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

from bert_tf.base.errors import check_packages
from bert_tf.config.section import (
    Bounds,
    Fraction,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFraction,
    PositiveInt,
    advanced,
    option,
    optional,
)
from bert_tf.config.sections.data import SENTENCE_SPLITTERS, check_splitter_installed
from bert_tf.config.sections.tables import BatchTokens, TableSection, batch_tokens_option

POOLINGS = ("mean", "cls", "max")
SIMILARITIES = ("cosine", "dot")
DEFAULT_SENTENCES = 3


def pooling_option() -> Any:
    return optional(
        "pooling of token states into a text vector (default: from a sentence-transformers folder, "
        "otherwise mean)",
        choices=POOLINGS,
    )


def normalize_option() -> Any:
    return optional(
        "divide vectors by their Euclidean norm (default: from a sentence-transformers folder, "
        "otherwise no)"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
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
        "combination of several layers: mean or concatenation", "mean", choices=("mean", "concat")
    )
    batch_tokens: BatchTokens = batch_tokens_option()
    block_rows: PositiveInt = advanced(
        "rows to read, sort by length and write at once", 8192, affects_output=False
    )

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        if not self.layers:
            yield "layers: names no layer; -1 is the last"


@dataclasses.dataclass(frozen=True, kw_only=True)
class EmbedConfig(TextVectorsSection):
    """Writes an embedding of every input row's text, in input order, or with --tokens one for
    each token.
    """

    section_name: ClassVar[str] = "embed"

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
        yield from super().faults()
        if self.tokens and self.output.endswith(".npy"):
            yield (
                "output: .npy holds one vector per row; let it end in .parquet or .jsonl for "
                "vectors of tokens"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchConfig(TextVectorsSection):
    """Finds the nearest texts of a corpus for every query, by the embeddings of a model."""

    section_name: ClassVar[str] = "search"

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
        "similarity of vectors: cosine, or dot product without normalization",
        "cosine",
        choices=SIMILARITIES,
    )
    index: str = option(
        "exact (compare every query with every vector), hnsw (approximate) or auto (exact up to "
        "search.exact_pairs)",
        "auto",
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
    check_packages("--index hnsw", ["faiss"], extra="search", instead="take --index exact")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SummarizeConfig(TextVectorsSection):
    """Adds an extractive summary to every input row, in input order: the sentences most similar to
    the document and different from each other, with their positions.
    """

    section_name: ClassVar[str] = "summarize"

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
        yield from super().faults()
        if self.sentences is not None and self.ratio is not None:
            yield "ratio: sentences is given as well; give one of them"
