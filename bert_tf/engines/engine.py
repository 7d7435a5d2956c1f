"""What every engine offers, whatever library runs the model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bert_tf.serving.signatures import DEFAULT_BATCH_TOKENS


class EngineLoader(Protocol):
    """What a job knows of an engine before it is loaded.

    Attributes:
        name: which engine and what it is set to; part of a job's identity.
    """

    @property
    def name(self) -> str: ...

    def reads(self, name: str) -> bool:
        """Whether it reads a file, named by its path in the model's folder."""

    def load(
        self, folder: str | Path, *, threads: int | None = None, is_checked: bool = False
    ) -> Engine:
        """Loads a model.

        Args:
            folder: with the model.
            threads: that the process has for the engine; None leaves them to the engine.
            is_checked: whether its files have been compared with its `SHA256SUMS` already.

        Raises:
            UsageError, InputError: as `Engine`.
        """


class Engine(Protocol):
    """An exported model, loaded to predict rows of texts.

    Its module has a function `load(folder: Path, *, threads: int | None, precision: str) ->
    Engine`: from an exported folder, with that many threads (None: all cores), in one of the
    precisions that its `EngineEntry` lists. It raises UsageError where the folder is not of
    this tool, and InputError where the model is damaged.

    Attributes:
        input_names: the columns of texts that `predict` needs, as the task names them.
    """

    input_names: tuple[str, ...]

    def predict(
        self,
        columns: dict[str, list[Any]],
        *,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
        on_rows: Callable[[int], None] | None = None,
        on_tokens: Callable[[int, int], None] | None = None,
    ) -> dict[str, np.ndarray]:
        """Predicts rows; `bert_tf.engines.row_calls` has the part that no engine does alone.

        Args:
            columns: by the names of `input_names` a text per row, or a list of texts; all of one
                length.
            batch_tokens: tokens per batch, padding included.
            on_rows: called with the number of rows after each part of them.
            on_tokens: called with the tokens of batches, without padding and with it, by an engine
                that knows them.

        Returns:
            The model's outputs by name, [rows, …] in the order of the rows: float32 scores, integer
            positions in characters, and texts as objects of type str.

        Raises:
            InputError: the model's scores are not numbers.
        """
