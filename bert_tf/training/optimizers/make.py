"""The optimizer that a config asks for."""

from __future__ import annotations

import re

import keras

from bert_tf.config.sections.loop import LoopSection
from bert_tf.training.optimizers.adamw import AdamW
from bert_tf.training.optimizers.base import RateFactor, StepOptimizer
from bert_tf.training.optimizers.lamb import Lamb

_OPTIMIZERS: dict[str, type[AdamW] | type[Lamb]] = {"adamw": AdamW, "lamb": Lamb}
_BLOCK = re.compile(r"/block_(\d+)/")


def make_optimizer(config: LoopSection, *, num_hidden_layers: int) -> StepOptimizer:
    """The optimizer of a run; the loop sets its learning rate at every step.

    Args:
        config: of the run.
        num_hidden_layers: of the model, for `layer_decay`.
    """
    return _OPTIMIZERS[config.optimizer](
        beta_1=config.adam_beta_1,
        beta_2=config.adam_beta_2,
        epsilon=config.adam_epsilon,
        weight_decay=config.weight_decay,
        bias_correction=config.adam_bias_correction,
        rate_factor=layer_rate_factor(config.layer_decay, num_hidden_layers),
    )


def layer_rate_factor(layer_decay: float, num_hidden_layers: int) -> RateFactor:
    """Factors on the learning rate that fall from the head to the embeddings.

    As BEiT's `optim_factory.py` (after ELECTRA's layer-wise decay): with n blocks, heads and the
    pooler have factor 1, block i (from 0) has layer_decay ** (n - i), the embeddings have
    layer_decay ** (n + 1). A masked-LM head's output matrix is the word embeddings.
    """

    def factor(variable: keras.Variable) -> float:
        if "/embeddings/" in variable.path:
            depth = 0
        else:
            block = _BLOCK.search(variable.path)
            depth = int(block[1]) + 1 if block else num_hidden_layers + 1
        return layer_decay ** (num_hidden_layers + 1 - depth)

    return factor
