"""Training steps with kernels against the same steps without."""

import dataclasses
import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.config.bert import BertConfig
from bert_tf.config.section import build_section
from bert_tf.config.sections.pretraining import TrainConfig
from bert_tf.models.heads import BertClassifier, BertPretrainingModel
from bert_tf.pretraining.loss import PretrainingLoss
from bert_tf.pretraining.step_trial import StepShape, full_batch
from bert_tf.training.arithmetic import Arithmetic, PrecisionPolicy
from bert_tf.training.optimizers import make_optimizer
from bert_tf.training.protocols import LossParts
from bert_tf.training.step import TrainingStep

pytestmark = pytest.mark.slow  # compiles training steps
CONFIG = BertConfig(
    vocab_size=50,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=16,
)


class LabelLoss:
    """Cross-entropy of labels."""

    def weights(self, batch):
        return {"loss": tf.cast(tf.size(batch["labels"]), tf.float32)}

    def __call__(self, model, batch, *, training, dropout_key):
        logits = model(batch, training=training, dropout_key=dropout_key)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(batch["labels"], logits)
        return LossParts(losses={"loss": tf.reduce_sum(losses)})


def training_step(model, loss, arithmetic):
    section = build_section(TrainConfig, {"data": "-", "output": "-", "size": "tiny"})
    optimizer = make_optimizer(section, num_hidden_layers=CONFIG.num_hidden_layers)
    optimizer.build(model.trainable_variables)
    return TrainingStep(
        model=model,
        loss=loss,
        optimizer=optimizer,
        strategy=tf.distribute.get_strategy(),
        arithmetic=arithmetic,
    )


def three_steps(model, loss, batch, *, use_kernels, shards, accumulation_steps, cpu_kernels=True):
    """Logged numbers of three steps, and the weights after them."""
    precision = PrecisionPolicy("float32", use_xla=False, use_kernels=use_kernels)
    arithmetic = Arithmetic(precision=precision, shards=shards, cpu_kernels=cpu_kernels)
    step = training_step(model, loss, arithmetic)
    numbers = step.run(
        iter(tf.data.Dataset.from_tensors(batch).repeat()),
        first_step=0,
        learning_rates=np.full(3, 1e-2),
        accumulation_steps=accumulation_steps,
    )
    return numbers, [variable.numpy() for variable in model.variables]


def pretraining_steps(*, frozen_blocks, **arithmetic):
    keras.utils.set_random_seed(1)
    model = BertPretrainingModel(CONFIG)
    model.build_weights()
    if frozen_blocks:
        model.encoder.freeze(frozen_blocks)
    batch = full_batch(StepShape(rows=8, length=16, predictions=3), CONFIG.vocab_size)
    batch["input_mask"][1:, 9:] = 0
    return three_steps(model, PretrainingLoss(), batch, **arithmetic)


@functools.cache
def classification_steps(*, shards, **arithmetic):
    """Return three steps with tables so large that the optimizer works on rows of them."""
    keras.utils.set_random_seed(1)
    config = dataclasses.replace(
        CONFIG,
        num_hidden_layers=1 + shards,  # parts share the graph of all blocks but the last
        vocab_size=10_000,
        max_position_embeddings=10_000,
        hidden_dropout_prob=0.0,
    )
    model = BertClassifier(config, 2)
    model.build_weights()
    random = np.random.default_rng(0)
    batch = {
        "input_word_ids": random.integers(0, 10_000, (8, 16), np.int32),
        "input_mask": np.ones((8, 16), np.int32),
        "labels": np.tile(np.int32([0, 1]), 4),
    }
    batch["input_word_ids"][:, ::3] = 7 + batch["labels"][:, None]
    batch["input_mask"][1:6, 9:] = 0
    return three_steps(model, LabelLoss(), batch, shards=shards, **arithmetic)


def require_same_steps(mine, theirs):
    (numbers, weights), (expected, other_weights) = mine, theirs
    for name in ("loss", "gradient_norm"):
        np.testing.assert_allclose(numbers[name], expected[name], rtol=1e-4, atol=1e-5)
    assert expected["loss"][2] < expected["loss"][0]
    for trained, other in zip(weights, other_weights, strict=True):
        np.testing.assert_allclose(trained, other, atol=1e-3)


@pytest.mark.parametrize(("frozen_blocks", "shards", "accumulation_steps"), [(0, 1, 1), (1, 2, 2)])
def test_steps_are_those_without(frozen_blocks, shards, accumulation_steps):
    mine, theirs = (
        pretraining_steps(
            use_kernels=use_kernels,
            frozen_blocks=frozen_blocks,
            shards=shards,
            accumulation_steps=accumulation_steps,
        )
        for use_kernels in (True, False)
    )
    require_same_steps(mine, theirs)


@pytest.mark.parametrize(("shards", "accumulation_steps"), [(1, 1), (2, 2)])
def test_steps_with_the_gradient_of_embeddings_as_rows_are_those_without(
    shards, accumulation_steps
):
    mine, theirs = (
        classification_steps(
            use_kernels=use_kernels, shards=shards, accumulation_steps=accumulation_steps
        )
        for use_kernels in (True, False)
    )
    require_same_steps(mine, theirs)


@pytest.mark.parametrize("accumulation_steps", [1, 2])
def test_steps_of_the_plain_path_are_those_with_kernels(accumulation_steps):
    keys = {"shards": 1, "accumulation_steps": accumulation_steps}
    mine = classification_steps(use_kernels=True, **keys)
    theirs = classification_steps(use_kernels=False, cpu_kernels=False, **keys)
    require_same_steps(mine, theirs)


def test_calls_that_follow_one_another_do_the_steps_of_one_in_bfloat16():
    """Parts of a batch read copies, until others assign the weights."""
    config = dataclasses.replace(CONFIG, vocab_size=10_000, intermediate_size=2**13)
    batch = {
        "input_word_ids": np.arange(128, dtype=np.int32).reshape(8, 16),
        "input_mask": np.ones((8, 16), np.int32),
        "labels": np.tile(np.int32([0, 1]), 4),
    }

    def made():
        keras.utils.set_random_seed(1)
        model = BertClassifier(config, 2, dtype="mixed_bfloat16")
        model.build_weights()
        precision = PrecisionPolicy("mixed_bfloat16", use_xla=False, use_kernels=True)
        return model, training_step(model, LabelLoss(), Arithmetic(precision=precision, shards=2))

    def losses(step, first, count, **keywords):
        batches = iter(tf.data.Dataset.from_tensors(batch).repeat())
        rates = np.full(count, 1e-2)
        return step.run(batches, first_step=first, learning_rates=rates, **keywords)["loss"]

    (whole, at_once), (parted, by_calls) = made(), made()
    expected = losses(at_once, 0, 4)
    first = losses(by_calls, 0, 1)
    rest = [losses(by_calls, number, 1, untouched=True) for number in (1, 2, 3)]
    np.testing.assert_array_equal(np.concatenate([first, *rest]), expected)
    for one, other in zip(whole.variables, parted.variables, strict=True):
        np.testing.assert_array_equal(one, other)
    for variable, initial in zip(parted.variables, made()[0].variables, strict=True):
        variable.assign(initial)
    np.testing.assert_array_equal(losses(by_calls, 0, 1), expected[:1])
