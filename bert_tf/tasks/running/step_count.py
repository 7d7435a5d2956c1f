"""Whether a fine-tuning has enough steps for its rows to be learned."""

from __future__ import annotations

import math

from bert_tf.base.wording import quantity

_FEW, _ENOUGH = 20, 100


def too_few_steps(*, rows: int, batch_size: int, epochs: float, steps: int) -> str | None:
    """A warning about a run with fewer than 20 steps; None of any other.

    Files of a few dozen rows have such runs by default: within so few steps, and the first of
    them with a learning rate that still rises, a new head stays close to chance. A hundred steps
    are what the smallest sets of GLUE have (RTE: 234 at batch size 32).

    Args:
        rows, batch_size: of an epoch.
        epochs: of the run.
        steps: of the run.
    """
    if steps >= _FEW:
        return None
    needed = math.ceil(_ENOUGH / math.ceil(rows / batch_size))
    return (
        f"{quantity(rows, 'training row')} in batches of {batch_size} make "
        f"{quantity(steps, 'step')} in {epochs:g} epochs, too few to learn from; give --epochs "
        f"{needed} for {_ENOUGH} steps, or a smaller --batch-size"
    )
