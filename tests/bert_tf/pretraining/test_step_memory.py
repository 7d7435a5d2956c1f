"""The estimate: exact where it counts weights, in proportion where it multiplies."""

import dataclasses

import pytest

from bert_tf.config.bert import sized_config
from bert_tf.models.pretraining import BertPretrainingModel
from bert_tf.pretraining.step_memory import parameter_count, step_memory
from bert_tf.pretraining.step_trial import StepShape
from bert_tf.training.devices.precision import PrecisionPolicy

MINI = sized_config("mini", 30522)
SHAPE = StepShape(rows=64, length=128, predictions=20)
WIDE = PrecisionPolicy("float32", False)


def test_weights_are_those_of_the_model():
    config = sized_config("tiny", 100)
    model = BertPretrainingModel(config)
    model.build_weights()
    assert parameter_count(config) == model.count_params()
    step = step_memory(config, SHAPE, WIDE, has_average=True)
    assert (step.weights, step.optimizer) == (4 * model.count_params(), 12 * model.count_params())


# Peaks of real processes (benchmarks/step_memory.py on two cores), in bytes.
@pytest.mark.parametrize(
    ("size", "rows", "length", "predictions", "precision", "micro_batches", "peak"),
    [
        ("tiny", 64, 128, 20, PrecisionPolicy("mixed_bfloat16", False, True), 1, 1.949e9),
        ("small", 8, 512, 78, PrecisionPolicy("mixed_bfloat16", False, True), 1, 2.764e9),
        ("mini", 64, 128, 20, PrecisionPolicy("mixed_bfloat16", False, True), 4, 1.733e9),
        ("mini", 16, 512, 78, PrecisionPolicy("float32", False, True), 1, 3.154e9),
        ("tiny", 32, 128, 20, PrecisionPolicy("mixed_bfloat16", False), 1, 1.295e9),
        ("tiny", 32, 128, 20, PrecisionPolicy("float32", True), 1, 1.439e9),
        ("mini", 64, 128, 20, PrecisionPolicy("mixed_bfloat16", False), 4, 1.638e9),
        ("mini", 32, 128, 20, PrecisionPolicy("float32", False), 1, 1.764e9),
        ("small", 8, 512, 76, PrecisionPolicy("mixed_bfloat16", False), 1, 2.674e9),
        ("small", 8, 512, 76, PrecisionPolicy("float32", True), 1, 3.113e9),
    ],
)
def test_the_estimate_is_near_what_was_measured(
    size, rows, length, predictions, precision, micro_batches, peak
):
    step = step_memory(
        sized_config(size, 30522),
        StepShape(rows=rows, length=length, predictions=predictions),
        precision,
        micro_batches=micro_batches,
    )
    assert step.total == pytest.approx(peak, rel=0.1)


def test_replicas_and_micro_batches_divide_rows_and_not_weights():
    whole = step_memory(MINI, SHAPE, WIDE, micro_batches=2)
    halves = step_memory(MINI, SHAPE, WIDE, micro_batches=2, replicas=2)
    assert halves.weights == whole.weights
    assert halves.activations == whole.activations / 2
    assert halves.logits == whole.logits / 2
    both = step_memory(MINI, SHAPE, WIDE, micro_batches=2, replicas=2, local_replicas=2)
    assert both.total == pytest.approx(2 * halves.total - halves.libraries)
    on_gpu = step_memory(MINI, SHAPE, WIDE, micro_batches=2, replicas=2, is_accelerator=True)
    assert on_gpu == dataclasses.replace(halves, libraries=0)


def test_less_dropout_keeps_less():
    dry = MINI.replace(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    assert step_memory(dry, SHAPE, WIDE).total < step_memory(MINI, SHAPE, WIDE).total
