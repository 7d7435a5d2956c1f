"""What every engine offers, whatever library runs the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from bert_tf.serving.signatures import DEFAULT_BATCH_TOKENS


class Engine(Protocol):
    """An exported model, loaded to predict rows of texts.

    Its module has a function `load(folder: Path, *, threads: int | None) -> Engine`: from an
    exported folder, with that many threads per operation (None: all cores). It raises UsageError
    where the folder is not of this tool, and InputError where the model is damaged.

    Attributes:
        input_names: the columns of texts that `predict` needs, as the task names them.
    """

    input_names: tuple[str, ...]

    def predict(
        self,
        columns: dict[str, list[str]],
        *,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
        on_rows: Callable[[int], None] | None = None,
    ) -> dict[str, np.ndarray]:
        """Predicts rows; `bert_tf.engines.row_calls` has the part that no engine does alone.

        Args:
            columns: texts by the names of `input_names`, all lists of one length.
            batch_tokens: tokens per batch, padding included.
            on_rows: called with the number of rows after each part of them.

        Returns:
            The model's outputs by name, [rows, …] in the order of the rows: float32 scores, integer
            positions in characters, and texts as objects of type str.

        Raises:
            InputError: the model's scores are not numbers.
        """
