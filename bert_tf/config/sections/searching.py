"""The section of `search`."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from bert_tf.base.errors import check_packages
from bert_tf.config.section import option
from bert_tf.config.sections.embedding import TextVectorsSection

INDEXES = ("auto", "exact", "hnsw")
SIMILARITIES = ("cosine", "dot")


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
        """Checks the library of the index."""
        if self.index == "hnsw":
            check_index_installed()


def check_index_installed() -> None:
    """Checks that the library of the approximate index is installed.

    Raises:
        UsageError: it is not.
    """
    check_packages("--index hnsw", ["faiss"], extra="search", instead="take --index exact")
