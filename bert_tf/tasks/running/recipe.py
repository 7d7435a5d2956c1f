"""The recipe of a fine-tuning: epochs, batch size and learning rate for the rows and the model.

A pretrained encoder needs some 300 updates before a new head beats the most frequent label, however
few the rows are (Mosbach et al. 2021, "On the Stability of Fine-tuning BERT"; Zhang et al. 2021,
"Revisiting Few-sample BERT Fine-tuning"). So few rows get small batches and many epochs. `init`
writes the recipe into a config; `finetune` follows it for keys that are not given.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bert_tf.base.console import Console
from bert_tf.base.wording import quantity, shown_setting
from bert_tf.config.bert import BertConfig
from bert_tf.config.section import former_defaults
from bert_tf.config.sections import FinetuneConfig

if TYPE_CHECKING:
    from bert_tf.tasks.running.finetuning_rows import FinetuningRows

FEW_ROWS = 4000
"""Training rows from which `finetune` keeps its fixed defaults, whose 3 epochs of batches of 32
make 375 steps of so many rows: as many as few rows get."""
ENOUGH_STEPS = 300
# Largest width, and one of the rates that Turc et al. and Devlin et al. (both 2019) tried for it.
_RATES = ((256, 3e-4), (512, 1e-4), (768, 3e-5), (math.inf, 2e-5))
_LONG = 256  # tokens from which the smaller batch saves memory
_SMALL_BATCH = 16
_BATCH = 32
_EPOCHS = 3
_MOST_EPOCHS = 20
# A loss on held-out rows that doubles shows that the model has begun to learn its rows by heart.
_DOUBLED = 2.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class ChosenRecipe:
    """A recipe for some rows.

    Attributes:
        early_stop_loss: see the key of `finetune`.
        sequences: number of sequences in one epoch.
    """

    batch_size: int
    learning_rate: float
    epochs: float
    early_stop_loss: float
    sequences: int

    @property
    def steps_per_epoch(self) -> int:
        return math.ceil(self.sequences / self.batch_size)

    @property
    def steps(self) -> int:
        return max(1, round(self.steps_per_epoch * self.epochs))

    @property
    def settings(self) -> dict[str, Any]:
        """Return the values of the config, by key."""
        names = ("batch_size", "learning_rate", "epochs", "early_stop_loss")
        return {name: getattr(self, name) for name in names}


def choose_recipe(
    model: BertConfig,
    *,
    max_seq_length: int,
    rows: float,
    sequences_per_row: float,
    chosen_by_user: Mapping[str, Any],
    least_batch_size: int = 1,
    stops_by_metric: bool = False,
) -> ChosenRecipe:
    """Choose batch size, learning rate, epochs and early stop for training rows.

    Few rows get small batches, and as many epochs as make about 300 steps, but at most 20.

    Args:
        model: sizes of the encoder; wider ones get a lower learning rate.
        max_seq_length: tokens; long sequences get the smaller batch, which saves memory.
        rows: number of training rows, without those held out.
        sequences_per_row: mean number of windows of a row.
        chosen_by_user: keys of the recipe that keep their value.
        least_batch_size: rows that a batch has to have, one for each of its micro-batches.
        stops_by_metric: whether `early_stop_evals` ends the run, so that the loss need not.
    """
    is_small = rows < FEW_ROWS or max_seq_length > _LONG
    batch_size = chosen_by_user.get("batch_size", _SMALL_BATCH if is_small else _BATCH)
    batch_size = max(batch_size, least_batch_size)
    sequences = max(1, round(rows * sequences_per_row))
    epochs = math.ceil(ENOUGH_STEPS / math.ceil(sequences / batch_size))
    is_open_ended = rows < FEW_ROWS and "epochs" not in chosen_by_user and not stops_by_metric
    chosen = {
        "learning_rate": next(rate for width, rate in _RATES if model.hidden_size <= width),
        "epochs": min(max(_EPOCHS, epochs), _MOST_EPOCHS),
        "early_stop_loss": _DOUBLED if is_open_ended else 0.0,
    }
    kept = {key: chosen_by_user[key] for key in chosen.keys() & chosen_by_user.keys()}
    return ChosenRecipe(batch_size=batch_size, sequences=sequences, **{**chosen, **kept})


def with_recipe(
    config: FinetuneConfig,
    model: BertConfig,
    rows: FinetuningRows,
    *,
    max_seq_length: int,
    console: Console,
) -> FinetuneConfig:
    """Return a config with values for all keys that the job may choose; print these and the reason.

    Args:
        config: options of `finetune`; None marks keys to choose.
        model: sizes of the encoder.
        rows: rows of the run. Rows without labels count, too; without rows to evaluate on, nothing
            stops early.
        max_seq_length: most tokens of a sequence.
        console: shows the choice.
    """
    former = former_defaults(config)
    values = {key: getattr(config, key) for key in former}
    chosen_by_user = {key: value for key, value in values.items() if value is not None}
    if len(chosen_by_user) == len(former):
        return config
    num_rows = len(rows.train.source) + len(rows.unlabeled or ())
    kept = {
        **({} if num_rows < FEW_ROWS else former),
        **({} if rows.evaluation is not None else {"early_stop_loss": 0.0}),
        **chosen_by_user,
    }
    recipe = choose_recipe(
        model,
        max_seq_length=max_seq_length,
        rows=num_rows,
        sequences_per_row=len(rows.train.rows) / num_rows,
        chosen_by_user=kept,
        least_batch_size=config.gradient_accumulation_steps,
        stops_by_metric=config.early_stop_evals > 0,
    )
    if not {"epochs", "batch_size", "learning_rate"} <= chosen_by_user.keys():
        console.info(_line(recipe, num_rows, chosen_by_user))
    return dataclasses.replace(config, **recipe.settings)


def _line(recipe: ChosenRecipe, rows: int, chosen_by_user: Mapping[str, Any]) -> str:
    """Return a line with the values for a number of rows, the given ones marked, and the reason."""

    def noted(key: str, text: str) -> str:
        return f"{text} (given)" if key in chosen_by_user else text

    steps = recipe.steps
    if rows >= FEW_ROWS:
        reason = f"the defaults from {FEW_ROWS:,} rows on"
    elif "epochs" in chosen_by_user:
        reason = f"{quantity(steps, 'step')}"
    elif recipe.epochs > _EPOCHS and steps >= ENOUGH_STEPS:
        reason = f"about {quantity(steps, 'step')}, as small files need"
    elif recipe.epochs > _EPOCHS:
        reason = f"{quantity(steps, 'step')}, the most epochs for so few rows"
    else:
        reason = f"{quantity(steps, 'step')}, in the batches of files below {FEW_ROWS:,} rows"
    epochs = f"{recipe.epochs:g} {'epoch' if recipe.epochs == 1 else 'epochs'}"
    parts = (
        noted("epochs", f"{epochs} of {quantity(recipe.steps_per_epoch, 'step')}"),
        noted("batch_size", f"batch {recipe.batch_size}"),
        noted("learning_rate", f"learning rate {shown_setting(recipe.learning_rate)}"),
    )
    return f"{quantity(rows, 'training row')}: {', '.join(parts)}: {reason}"
