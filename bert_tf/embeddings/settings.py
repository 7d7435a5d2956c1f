"""The vectors to make with a model; does not import TensorFlow."""

from __future__ import annotations

import dataclasses
import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from bert_tf.engines.engine import Engine

_EMBEDDER = "bert_tf.embeddings.embedder"
EMBEDDING = "embedding"
TOKEN_COLUMNS = ("tokens", "token_starts", "token_ends", "token_embeddings")
# Output with the tokens of each text before it was cut.
TEXT_TOKENS = "text_tokens"


@dataclasses.dataclass(frozen=True, kw_only=True)
class EmbedderSettings:
    """The vectors that an `Embedder` makes; an `EngineLoader`.

    Attributes:
        pooling: `mean`, `cls` or `max`; ignored for vectors of tokens.
        normalize: whether to divide each vector by its Euclidean norm.
        max_seq_length: most tokens of a text, [CLS] and [SEP] included.
        layers: 0 for the embeddings, 1 for the first layer and so on, -1 for the last one.
        layer_combination: `mean` or `concat` of several layers.
        tokens: whether to make a vector for each token instead of each text.
        prompt: put before each text.
        lowercase_texts: whether to lower-case texts before the model's tokenization.
    """

    pooling: str
    normalize: bool
    max_seq_length: int
    layers: tuple[int, ...] = (-1,)
    layer_combination: str = "mean"
    tokens: bool = False
    prompt: str = ""
    lowercase_texts: bool = False

    @classmethod
    def of_model(cls, task: Mapping[str, Any]) -> Self:
        """Return the settings of the vectors by which texts of a fine-tuned model are compared.

        Args:
            task: its `task.json`.
        """
        return cls(pooling="mean", normalize=True, max_seq_length=task["max_seq_length"])

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the vectors: one, or those of a row's tokens."""
        return TOKEN_COLUMNS if self.tokens else (EMBEDDING,)

    def dimensions(self, hidden_size: int) -> int:
        """Return the size of a vector, by the width of the encoder."""
        is_joined = self.layer_combination == "concat"
        return hidden_size * len(self.layers) if is_joined else hidden_size

    @property
    def name(self) -> str:
        """Identity of the job: other settings make other vectors."""
        return f"encoder {json.dumps(dataclasses.asdict(self))}"

    def reads(self, name: str) -> bool:
        """Return True: any file of a model folder may decide about its vectors."""
        return True

    def load(
        self, folder: str | Path, *, threads: int | None = None, is_checked: bool = False
    ) -> Engine:
        """Load the model; see `EngineLoader.load`. Always checks the files."""
        embedder: Engine = importlib.import_module(_EMBEDDER).load(folder, self, threads=threads)
        return embedder
