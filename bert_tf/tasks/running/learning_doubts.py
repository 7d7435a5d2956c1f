"""Whether a fine-tuning learned anything: its losses next to those of ignoring the texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bert_tf.tasks.base.task import TaskData
from bert_tf.tasks.running.finetuning import FinetuningResult

_NEARLY = 0.97  # of the loss without texts: what is left is noise, or far from useful


def learning_doubts(result: FinetuningResult) -> Iterator[str]:
    """A warning if the training loss, and that of evaluation if there is one, stayed at chance.

    Training loss alone is averaged over the last steps, which of a short run are all of them: such
    a model may have learned something by its end, as its evaluation shows.
    """
    chance = result.train.chance_loss
    loss = result.training.train.get("loss")
    if chance is None or loss is None or loss < _NEARLY * chance:
        return
    if _is_below_chance(result.training.eval, result.evaluation):
        return
    yield (
        f"the training loss ended at {loss:.4f}; a model that ignores the texts has {chance:.4f}: "
        "nothing was learned. Likely causes: a learning rate that is too high or too low, too few "
        "steps, labels that do not belong to their rows"
    )


def _is_below_chance(measured: Mapping[str, float] | None, data: TaskData | None) -> bool:
    if measured is None or data is None or data.chance_loss is None:
        return False
    return measured["loss"] < _NEARLY * data.chance_loss
