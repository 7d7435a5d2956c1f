"""The section of `embed`."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from bert_tf.config.section import option
from bert_tf.config.sections.tables import TableSection

POOLINGS = ("mean", "cls", "max")
LAYER_COMBINATIONS = ("mean", "concat")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextVectorsSection(TableSection):
    """How vectors are made of the texts of tables."""

    text_column: str | None = option(
        "column of the text (default: the column that the model was trained on, or text)",
        default=None,
    )
    pooling: str | None = option(
        "tokens to the vector of a text (default: as a folder of sentence-transformers says, "
        "otherwise mean)",
        default=None,
        choices=POOLINGS,
    )
    normalize: bool | None = option(
        "divide vectors by their Euclidean norm (default: as a folder of sentence-transformers "
        "says, otherwise no)",
        default=None,
    )
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
    batch_tokens: int = option(
        "tokens per batch, padding included",
        default=2048,
        minimum=1,
        maximum=100_000_000,
        advanced=True,
        affects_output=False,
    )
    block_rows: int = option(
        "rows that are read, sorted by length and written at a time",
        default=8192,
        minimum=1,
        advanced=True,
        affects_output=False,
    )

    def faults(self) -> list[str]:
        """Refuses an empty list of layers."""
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
        """Refuses vectors of tokens in a file of one vector per row."""
        faults = super().faults()
        if self.tokens and self.output.endswith(".npy"):
            faults.append(
                "output: .npy holds one vector per row; let it end in .parquet or .jsonl for "
                "vectors of tokens"
            )
        return faults
