"""The numbers of the audit for accelerators, on a small model."""

import numpy as np
import pytest
import tensorflow as tf
from accelerator_audit import (
    as_on_gpu,
    epoch_shapes,
    instructions_of,
    largest,
    operations_of_step,
    program_of_step,
    update_bytes,
)

from bert_tf.config.bert import sized_config
from bert_tf.pretraining.step_trial import StepShape, full_batch, training_step_of

SHAPE = StepShape(rows=3, length=40, predictions=5)


def needs_only_the_device(step, batch):
    """Return whether XLA's program of a step has no dynamic shape and asks the host for nothing."""
    tensors = {name: tf.constant(values) for name, values in batch.items()}
    arguments = (tensors, tf.constant(0), tf.constant(1e-4), 1)
    program = step.compiled.experimental_get_compiler_ir(*arguments)(stage="hlo")
    from_host = ("infeed", "outfeed", "host", "callback", "custom-call")
    return "<=" not in program and not any(f" {word}" in program for word in from_host)


@pytest.mark.slow  # XLA compiles a training step of BERT
def test_a_step_is_one_program_without_large_float32_tensors():
    config = sized_config("tiny", 1000)
    step = training_step_of(config, as_on_gpu())
    batch = full_batch(SHAPE, config.vocab_size)
    for has_one_shape in (True, False):
        operations = operations_of_step(step, batch, has_one_shape=has_one_shape)
        assert operations["XLA"] == 1
        assert operations.total() < 20
        assert not operations.keys() & {"Where", "If", "Assert", "ResourceApplyAdam", "Unique"}
    assert needs_only_the_device(step, batch), "as a TPU needs it"
    program = program_of_step(step, batch)
    assert 20 < update_bytes(program) / step.model.count_params() < 48
    shapes = [each.shape.partition("{")[0] for each, _ in largest(program, 1000)]
    assert "bf16[15,1024]" in shapes, "logits, whose vocabulary is filled up"
    assert "f32[15,1024]" not in shapes
    assert "bf16[3,2,40,40]" in shapes, "attention scores"


def test_an_epoch_has_at_most_eight_shapes():
    lengths = np.clip(np.random.default_rng(0).lognormal(4, 1, 700).astype(np.int64), 2, 512)
    for shapes in epoch_shapes(lengths, max_seq_length=512).values():
        assert 3 < len(shapes) <= 8
        assert max(length for _, length in shapes) == 512


def test_what_a_sum_reads_and_products_of_16_bits_are_counted_as_on_gpus():
    text = """HloModule step

ENTRY %main (p: bf16[2,3]) -> (f32[]) {
  %p = bf16[2,3]{1,0} parameter(0)
  %wide = f32[2,3]{1,0} fusion(%p), kind=kLoop, calls=%c1
  %product = f32[2,2]{1,0} dot(%wide, %wide), lhs_contracting_dims={1}
  %squares = f32[9,9]{1,0} fusion(%product), kind=kLoop, calls=%c2
  %wrapped_reduce = f32[] fusion(%squares), kind=kLoop, calls=%c3
  ROOT %result = (f32[]) tuple(%wrapped_reduce)
}
"""
    found = largest(instructions_of(text))
    assert [(each.shape, each.bytes, times) for each, times in found] == [
        ("bf16[2,3]{1,0}", 12, 1),
        ("bf16[2,2]{1,0}", 8, 1),
    ]
