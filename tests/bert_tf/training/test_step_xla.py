"""Steps that XLA compiles as for accelerators against steps of plain layers."""

import itertools
import threading

import keras
import numpy as np
import pytest
import tensorflow as tf
from behavior.packed_task import make_packed_loop

from bert_tf.config.bert import BertConfig
from bert_tf.models.heads import BertPretrainingModel
from bert_tf.pretraining.loss import PretrainingLoss
from bert_tf.pretraining.step_trial import StepShape, full_batch, training_step_of
from bert_tf.training.arithmetic import Arithmetic, PrecisionPolicy
from bert_tf.training.distribution import distributed_iterator
from bert_tf.training.evaluation import Evaluation
from bert_tf.xla.step_programs import STEPS_PER_PROGRAM, StepPrograms

CONFIG = BertConfig(
    vocab_size=50,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=16,
)
BERT = CONFIG.replace(num_hidden_layers=1)
pytestmark = pytest.mark.slow  # XLA compiles a training step of BERT


def pretrained(*, use_xla, policy="float32", deterministic=False):
    """Return the step, and logged numbers of three with dropout."""
    keras.utils.set_random_seed(1)
    precision = PrecisionPolicy(policy, use_xla=use_xla)
    step = training_step_of(
        BERT, Arithmetic(precision=precision, cpu_kernels=False, deterministic=deterministic)
    )
    batch = full_batch(StepShape(rows=8, length=16, predictions=3), BERT.vocab_size)
    batch["input_mask"][1:, 9:] = 0
    dataset = tf.data.Dataset.from_tensors(batch)
    numbers = step.run(
        iter(dataset.repeat()), first_step=0, learning_rates=np.full(3, 1e-2), accumulation_steps=2
    )
    return step, dataset, numbers


def evaluation_and_weights(step, dataset, _):
    """After the steps."""
    evaluation = Evaluation(
        model=step.model,
        loss=PretrainingLoss(),
        strategy=tf.distribute.get_strategy(),
        make_dataset=lambda: dataset,
        arithmetic=step.arithmetic,
    ).run()
    return evaluation, [variable.numpy() for variable in step.model.variables]


@pytest.fixture(scope="module")
def plain():
    return pretrained(use_xla=False)


def test_losses_evaluation_and_weights_are_those_of_plain_layers(plain):
    compiled = pretrained(use_xla=True, deterministic=True)
    (step, _, numbers), (_, _, expected) = compiled, plain
    evaluation, weights = evaluation_and_weights(*compiled)
    expected_evaluation, expected_weights = evaluation_and_weights(*plain)
    assert isinstance(step.model, BertPretrainingModel)
    for name in ("loss", "mlm_loss", "mlm_accuracy", "nsp_loss", "gradient_norm"):
        np.testing.assert_allclose(numbers[name], expected[name], rtol=1e-5, err_msg=name)
    assert expected["loss"][2] < expected["loss"][0]
    assert evaluation == pytest.approx(expected_evaluation, rel=1e-4)
    for trained, other in zip(weights, expected_weights, strict=True):
        assert trained.shape == other.shape, "the vocabulary is filled up in the graph alone"
        np.testing.assert_allclose(trained, other, atol=1e-3)


def test_steps_in_one_program_are_those_of_a_program_each(monkeypatch):
    """A program has eight of ten steps, another two: the same numbers, but for XLA's fusion."""

    def numbers_of_ten():
        keras.utils.set_random_seed(1)
        precision = PrecisionPolicy("float32", use_xla=True)
        step = training_step_of(BERT, Arithmetic(precision=precision, cpu_kernels=False))
        batch = full_batch(StepShape(rows=4, length=16, predictions=3), BERT.vocab_size)
        random = np.random.default_rng(1)
        ids = random.integers(0, BERT.vocab_size, (10, 4, 16)).astype(np.int32)
        dataset = tf.data.Dataset.from_tensor_slices(ids).map(
            lambda each: {**batch, "input_word_ids": each}
        )
        batches = iter(dataset)
        rates = np.linspace(1e-2, 1e-3, 10)
        parts = [
            step.run(batches, first_step=first, learning_rates=rates[first:last])
            for first, last in ((0, 9), (9, 10))
        ]
        numbers = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return numbers, [variable.numpy() for variable in step.model.variables]

    found, weights = numbers_of_ten()
    monkeypatch.setattr(StepPrograms, "can_stack", lambda *_: False)
    expected, expected_weights = numbers_of_ten()
    assert len(set(expected["loss"].tolist())) == 10, "each step has another batch"
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-4, err_msg=name)
    for trained, other in zip(weights, expected_weights, strict=True):
        np.testing.assert_allclose(trained, other, atol=1e-4)


def test_losses_in_bfloat16_are_close_to_those_in_float32(plain):
    _, _, numbers = pretrained(use_xla=True, policy="mixed_bfloat16")
    _, _, expected = plain
    np.testing.assert_allclose(numbers["loss"], expected["loss"], rtol=0.02)


def test_the_batches_of_the_next_program_are_prepared_meanwhile(tmp_path):
    """One batch is taken from the iterator, so the others that are made wait for a program."""
    made = threading.Semaphore(0)

    def numbers():
        for number in itertools.count():
            yield number
            made.release()

    def batches():
        return tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec([], tf.int32))

    loop = make_packed_loop(tmp_path, as_on_gpus=True)
    opened = distributed_iterator(
        tf.distribute.get_strategy(),
        batches,
        batches_ahead=loop.training_step.batches_ahead,
    )
    assert next(opened) == 0  # a dataset prepares nothing before it is asked
    for _ in range(STEPS_PER_PROGRAM):
        assert made.acquire(timeout=60)
    plain = make_packed_loop(tmp_path)
    assert plain.training_step.batches_ahead < loop.training_step.batches_ahead == STEPS_PER_PROGRAM
