"""Which vectors of a model are wanted; known without TensorFlow."""

from __future__ import annotations

import dataclasses
import importlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bert_tf.engines.engine import Engine

_EMBEDDER = "bert_tf.embeddings.embedder"
EMBEDDING = "embedding"
TOKEN_COLUMNS = ("tokens", "token_starts", "token_ends", "token_embeddings")
# What an embedder counts beside the vectors: tokens of each text before it was cut.
TEXT_TOKENS = "text_tokens"


@dataclasses.dataclass(frozen=True, kw_only=True)
class EmbedderSettings:
    """The vectors that an `Embedder` makes.

    Attributes:
        pooling: `mean`, `cls` or `max`; of no account for vectors of tokens.
        normalize: whether each vector is divided by its Euclidean norm.
        max_seq_length: tokens kept of a text, [CLS] and [SEP] included.
        layers: which of the encoder's states: 0 for the embeddings, 1 for the first layer and so
            on, or from the last (-1) backward.
        layer_combination: `mean` of several layers, or `concat`.
        tokens: a vector for each token in place of one for each text.
        prompt: what is put before each text.
        lowercase_texts: whether texts are lower-cased before the model's own tokenization.
    """

    pooling: str
    normalize: bool
    max_seq_length: int
    layers: tuple[int, ...] = (-1,)
    layer_combination: str = "mean"
    tokens: bool = False
    prompt: str = ""
    lowercase_texts: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of what is made for each text."""
        return TOKEN_COLUMNS if self.tokens else (EMBEDDING,)

    def dimensions(self, hidden_size: int) -> int:
        """Length of a vector, of an encoder with states of this size."""
        is_joined = self.layer_combination == "concat"
        return hidden_size * len(self.layers) if is_joined else hidden_size

    @property
    def name(self) -> str:
        """The settings; jobs of different names make different vectors."""
        return f"encoder {json.dumps(dataclasses.asdict(self))}"

    def reads(self, name: str) -> bool:
        """Whether a file of a model's folder may decide the vectors."""
        return True

    def load(
        self, folder: str | Path, *, threads: int | None = None, is_checked: bool = False
    ) -> Engine:
        """Loads a model to make these vectors; see `EngineEntry.load`.

        Args:
            folder: a model directory or a HuggingFace folder.
            threads: of one operation; None leaves all cores to the process.
            is_checked: of no account: a model directory is checked as it is read.
        """
        embedder: Engine = importlib.import_module(_EMBEDDER).load(folder, self, threads=threads)
        return embedder
