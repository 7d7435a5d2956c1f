"""Length, batch, learning rate and epochs for a model and the rows it is to be fine-tuned on."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from bert_tf.config.bert import BertConfig

# By width: the rates that Turc et al. (2019) and Devlin et al. (2019) chose among for such sizes.
_RATES = ((256, 3e-4), (512, 1e-4), (768, 3e-5), (math.inf, 2e-5))
_COVERED = 0.99  # of the rows are read to their end
_LENGTH_MULTIPLE = 16
_LEAST_LENGTH = 32
_FEW_ROWS = 4000  # smaller sets are trained in smaller batches
_LONG = 256  # tokens from which the smaller batch saves memory
_SMALL_BATCH, _BATCH = 16, 32
_ENOUGH_STEPS = 300
_EPOCHS, _MOST_EPOCHS = 3, 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recipe:
    """Settings of a fine-tuning.

    Attributes:
        max_seq_length: tokens per sequence.
        batch_size: rows per step.
        learning_rate: peak.
        epochs: passes over the rows.
        sequences: that are trained on.
    """

    max_seq_length: int
    batch_size: int
    learning_rate: float
    epochs: int
    sequences: int

    @property
    def settings(self) -> dict[str, Any]:
        """The values of the config, by key."""
        names = ("max_seq_length", "batch_size", "learning_rate", "epochs")
        return {name: getattr(self, name) for name in names}

    @property
    def steps(self) -> int:
        """Steps in all."""
        return self.steps_of(batch_size=self.batch_size, epochs=self.epochs)

    def steps_of(self, *, batch_size: int, epochs: float) -> int:
        """Those of another batch size or number of epochs on the same rows."""
        return max(1, round(math.ceil(self.sequences / batch_size) * epochs))


def choose_length(
    lengths: np.ndarray, *, in_windows: bool, default: int, longest_of_model: int
) -> int:
    """The tokens of a sequence that 99% of the rows fit in.

    Args:
        lengths: tokens of sequences, [CLS] and [SEP] included, int [n].
        in_windows: whether what does not fit becomes more sequences; nothing is lost then, and the
            task's default is taken.
        default: of the task.
        longest_of_model: positions that the model has.
    """
    if in_windows:
        return min(default, longest_of_model)
    needed = int(np.quantile(lengths, _COVERED, method="higher"))
    rounded = -(-needed // _LENGTH_MULTIPLE) * _LENGTH_MULTIPLE
    return min(max(_LEAST_LENGTH, rounded), longest_of_model)


def choose_recipe(
    model: BertConfig, *, max_seq_length: int, rows: float, sequences_per_row: float
) -> Recipe:
    """Batch size, learning rate and epochs.

    Few rows get small batches and more epochs (Mosbach et al. 2021), so that there are about 300
    steps.

    Args:
        model: its shape.
        max_seq_length: tokens per sequence.
        rows: that are trained on.
        sequences_per_row: of windows.
    """
    is_small = rows < _FEW_ROWS or max_seq_length > _LONG
    batch_size = _SMALL_BATCH if is_small else _BATCH
    sequences = max(1, round(rows * sequences_per_row))
    steps_per_epoch = math.ceil(sequences / batch_size)
    epochs = min(max(_EPOCHS, math.ceil(_ENOUGH_STEPS / steps_per_epoch)), _MOST_EPOCHS)
    return Recipe(
        max_seq_length=max_seq_length,
        batch_size=batch_size,
        learning_rate=next(rate for width, rate in _RATES if model.hidden_size <= width),
        epochs=epochs,
        sequences=sequences,
    )
