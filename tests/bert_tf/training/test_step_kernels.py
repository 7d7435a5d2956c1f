"""Training steps with kernels against the same steps without."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.config.bert import BertConfig
from bert_tf.config.section import build_section
from bert_tf.config.sections.pretraining import TrainConfig
from bert_tf.models.pretraining import BertPretrainingModel
from bert_tf.pretraining.loss import PretrainingLoss
from bert_tf.pretraining.step_trial import StepShape, full_batch
from bert_tf.training.devices.precision import Arithmetic, PrecisionPolicy
from bert_tf.training.optimizers.make import make_optimizer
from bert_tf.training.step import TrainingStep

CONFIG = BertConfig(
    vocab_size=50,
    hidden_size=16,
    num_hidden_layers=3,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=16,
)


def three_steps(*, use_kernels, frozen_blocks, shards, accumulation_steps):
    """Logged numbers of three steps, and the weights after them."""
    keras.utils.set_random_seed(1)
    model = BertPretrainingModel(CONFIG)
    model.build_weights()
    if frozen_blocks:
        model.encoder.freeze(frozen_blocks)
    section = build_section(TrainConfig, {"data": "-", "output": "-", "size": "tiny"})
    optimizer = make_optimizer(section, num_hidden_layers=3)
    optimizer.build(model.trainable_variables)
    step = TrainingStep(
        model=model,
        loss=PretrainingLoss(),
        optimizer=optimizer,
        strategy=tf.distribute.get_strategy(),
        arithmetic=Arithmetic(
            precision=PrecisionPolicy("float32", use_xla=False, use_kernels=use_kernels),
            shards=shards,
        ),
    )
    batch = full_batch(StepShape(rows=8, length=16, predictions=3), CONFIG.vocab_size)
    batch["input_mask"][1:, 9:] = 0
    numbers = step.run(
        iter(tf.data.Dataset.from_tensors(batch).repeat()),
        first_step=0,
        learning_rates=np.full(3, 1e-2),
        accumulation_steps=accumulation_steps,
    )
    return numbers, [variable.numpy() for variable in model.variables]


@pytest.mark.parametrize(
    ("frozen_blocks", "shards", "accumulation_steps"), [(0, 1, 1), (0, 2, 2), (2, 2, 1)]
)
def test_steps_are_those_without(frozen_blocks, shards, accumulation_steps):
    (mine, weights), (theirs, expected) = (
        three_steps(
            use_kernels=use_kernels,
            frozen_blocks=frozen_blocks,
            shards=shards,
            accumulation_steps=accumulation_steps,
        )
        for use_kernels in (True, False)
    )
    for name in ("loss", "gradient_norm"):
        np.testing.assert_allclose(mine[name], theirs[name], rtol=1e-4)
    assert theirs["loss"][2] < theirs["loss"][0]
    for trained, other in zip(weights, expected, strict=True):
        np.testing.assert_allclose(trained, other, atol=1e-3)
