"""The sections of `embed`, `search` and `summarize`."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from bert_tf.base.errors import check_packages
from bert_tf.config.section import option
from bert_tf.config.sections.data import SENTENCE_SPLITTERS, check_splitter_installed
from bert_tf.config.sections.tables import TableSection, batch_tokens_option

POOLINGS = ("mean", "cls", "max")
LAYER_COMBINATIONS = ("mean", "concat")
INDEXES = ("auto", "exact", "hnsw")
SIMILARITIES = ("cosine", "dot")
DEFAULT_SENTENCES = 3


def pooling_option() -> Any:
    return option(
        "tokens to the vector of a text (default: as a folder of sentence-transformers says, "
        "otherwise mean)",
        default=None,
        choices=POOLINGS,
    )


def normalize_option() -> Any:
    return option(
        "divide vectors by their Euclidean norm (default: as a folder of sentence-transformers "
        "says, otherwise no)",
        default=None,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextVectorsSection(TableSection):
    """How vectors are made of the texts of tables."""

    text_column: str | None = option(
        "column of the text (default: the column that the model was trained on, or text)",
        default=None,
    )
    pooling: str | None = pooling_option()
    normalize: bool | None = normalize_option()
    max_seq_length: int | None = option(
        "tokens kept of a text, [CLS] and [SEP] included (default: the model's)",
        default=None,
        minimum=3,
    )
    layers: tuple[int, ...] = option(
        "layer whose states are taken: 1 is the first, -1 the last, 0 the embeddings; repeatable",
        default=(-1,),
    )
    layer_combination: str = option(
        "several layers: their mean, or side by side",
        default="mean",
        choices=LAYER_COMBINATIONS,
    )
    batch_tokens: int = batch_tokens_option()
    block_rows: int = option(
        "rows that are read, sorted by length and written at a time",
        default=8192,
        minimum=1,
        advanced=True,
        affects_output=False,
    )

    def faults(self) -> list[str]:
        faults = super().faults()
        if not self.layers:
            faults.append("layers: names no layer; -1 is the last")
        return faults


@dataclasses.dataclass(frozen=True, kw_only=True)
class EmbedConfig(TextVectorsSection):
    """Turns the texts of tables into vectors."""

    section_name: ClassVar[str] = "embed"

    model: str = option("model directory, run, HuggingFace folder or exported model", reads="model")
    input: tuple[str, ...] = option(
        "rows with a text: a path or a quoted glob; repeatable", reads="tables"
    )
    output: str = option("file to write: .parquet, .npy or .jsonl", writes="file")
    tokens: bool = option(
        "a vector for each token, with the token and its characters, in place of one for each text",
        default=False,
    )
    prompt_name: str | None = option(
        "prompt of a folder of sentence-transformers that is put before each text: query, "
        "document, … (default: the folder's default)",
        default=None,
    )
    limit: int = option("embed only the first rows of each input (0: all)", default=0, minimum=0)

    def faults(self) -> list[str]:
        faults = super().faults()
        if self.tokens and self.output.endswith(".npy"):
            faults.append(
                "output: .npy holds one vector per row; let it end in .parquet or .jsonl for "
                "vectors of tokens"
            )
        return faults


@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchConfig(TextVectorsSection):
    """Finds the nearest texts of a corpus for every query."""

    section_name: ClassVar[str] = "search"

    queries: str = option(
        "rows with a text, or vectors that embed wrote (.npy, .parquet)", reads="table"
    )
    corpus: str = option("the same for the texts to search", reads="table")
    model: str | None = option(
        "model directory, run, HuggingFace folder or exported model; needed where queries or "
        "corpus are texts",
        default=None,
        common=True,
        reads="model",
    )
    output: str = option("file to write: .jsonl or .csv", writes="file")
    top_k: int = option("texts per query", default=10, minimum=1)
    similarity: str = option(
        "what is compared: cosine, or dot products of vectors as they are",
        default="cosine",
        choices=SIMILARITIES,
    )
    index: str = option(
        "exact compares every query with every vector; hnsw is approximate; auto: exact up to "
        "search.exact_pairs",
        default="auto",
        choices=INDEXES,
    )
    exact_pairs: float = option(
        "pairs of query and vector up to which auto compares all",
        default=1e9,
        minimum=0,
        advanced=True,
    )
    recall_queries: int = option(
        "queries on which the recall of an approximate index is measured",
        default=100,
        minimum=1,
        advanced=True,
    )

    def check_installed(self) -> None:
        if self.index == "hnsw":
            check_index_installed()


def check_index_installed() -> None:
    check_packages("--index hnsw", ["faiss"], extra="search", instead="take --index exact")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SummarizeConfig(TextVectorsSection):
    """Adds an extractive summary to every row of tables."""

    section_name: ClassVar[str] = "summarize"

    model: str = option(
        "model that makes the sentences' vectors: model directory, run, HuggingFace folder or "
        "exported model",
        reads="model",
    )
    input: tuple[str, ...] = option(
        "rows with a document: a path or a quoted glob; repeatable", reads="tables"
    )
    output: str = option("file, whose extension sets the format, or directory to write")
    sentences: int | None = option(
        f"sentences of a summary, at most (default: {DEFAULT_SENTENCES}, unless ratio is given)",
        default=None,
        minimum=1,
    )
    ratio: float | None = option(
        "fraction of a document's sentences, rounded up, in place of a number",
        default=None,
        above=0.0,
        maximum=1.0,
    )
    mmr_lambda: float = option(
        "maximal marginal relevance: 1 takes the sentences most similar to the document, lower "
        "values sentences that differ from those already chosen",
        default=0.7,
        minimum=0.0,
        maximum=1.0,
    )
    sentence_splitter: str = option(
        "sentence splitter of paragraphs: rules (any language), sentencex (Wikimedia's library, "
        "for sentence_language), none (one sentence per line)",
        default="rules",
        choices=SENTENCE_SPLITTERS,
    )
    sentence_language: str = option("language code of the text, for sentencex", default="en")
    limit: int = option(
        "summarize only the first rows of each input (0: all)", default=0, minimum=0
    )

    def check_installed(self) -> None:
        check_splitter_installed(self.sentence_splitter)

    def faults(self) -> list[str]:
        faults = super().faults()
        if self.sentences is not None and self.ratio is not None:
            faults.append("ratio: sentences is given as well; give one of them")
        return faults
