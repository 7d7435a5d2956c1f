"""The vectors to make with a model; known without TensorFlow."""

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
    """The vectors that an `Embedder` makes; an `EngineLoader`."""

    pooling: str  # `mean`, `cls` or `max`; ignored for token embeddings
    normalize: bool  # whether to divide each vector by its Euclidean norm
    max_seq_length: int  # tokens kept of a text, [CLS] and [SEP] included
    # 0 for the embeddings, 1 for the first layer and so on, or from the last (-1) back
    layers: tuple[int, ...] = (-1,)
    layer_combination: str = "mean"  # of several layers, or `concat`
    tokens: bool = False  # whether to make a vector for each token, not for each text
    prompt: str = ""  # put before each text
    lowercase_texts: bool = False  # whether to lower-case texts before the model's tokenization

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the vectors come in: one, or those of a row's tokens."""
        return TOKEN_COLUMNS if self.tokens else (EMBEDDING,)

    def dimensions(self, hidden_size: int) -> int:
        """Count numbers of a vector by the width of the encoder."""
        is_joined = self.layer_combination == "concat"
        return hidden_size * len(self.layers) if is_joined else hidden_size

    @property
    def name(self) -> str:
        """Identity of the job: other settings make other vectors."""
        return f"encoder {json.dumps(dataclasses.asdict(self))}"

    def reads(self, name: str) -> bool:
        """Whether it reads a file; any file of a model folder may decide on its vectors."""
        return True

    def load(
        self, folder: str | Path, *, threads: int | None = None, is_checked: bool = False
    ) -> Engine:
        """See `EngineLoader.load`; always checks the files."""
        embedder: Engine = importlib.import_module(_EMBEDDER).load(folder, self, threads=threads)
        return embedder
