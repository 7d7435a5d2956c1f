"""Islands: what XLA compiles has the numbers of what it does not."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from bert_tf.config.bert import BertConfig
from bert_tf.layers.island import compiled_islands, island, row_mean
from bert_tf.layers.repeated_block import blocks_traced_once
from bert_tf.models.pretraining import BertPretrainingModel
from bert_tf.pretraining.loss import PretrainingLoss
from bert_tf.pretraining.step_trial import StepShape, full_batch

CONFIG = BertConfig(
    vocab_size=50,
    hidden_size=8,
    num_hidden_layers=3,
    num_attention_heads=2,
    intermediate_size=16,
    max_position_embeddings=16,
    hidden_act="gelu_new",
)


def compiled_functions(graph):
    """Names of the functions that XLA compiles in a graph and in what it calls."""
    functions = graph.graph.as_graph_def().library.function
    return [f.signature.name for f in functions if f.attr["_XlaMustCompile"].b]


@island
def chosen_sum(values, others, keep, unused):
    assert unused is None
    return ops.where(keep, values - row_mean(values), ops.stop_gradient(others))


def outputs_and_gradients(*arguments):
    sources = arguments[:2]
    with tf.GradientTape() as tape:
        tape.watch(sources)
        outputs = chosen_sum(*arguments, None)
    return outputs, *tape.gradient(outputs, sources, output_gradients=2 * outputs)


def test_values_and_gradients_are_those_of_the_function():
    random = np.random.default_rng(1)
    values, others = (tf.constant(random.normal(size=(3, 5)), tf.float32) for _ in range(2))
    keep = tf.constant(random.random((3, 5)) < 0.5)
    plain = outputs_and_gradients(values, others, keep)
    traced = tf.function(outputs_and_gradients, autograph=False)
    with compiled_islands():
        compiled = traced(values, others, keep)
        graph = traced.get_concrete_function(values, others, keep)
    assert len(compiled_functions(graph)) == 2
    assert compiled[2] is None and plain[2] is None, "no gradient of what has none"
    for mine, expected in zip(compiled[:2], plain[:2], strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-6, atol=1e-6)


def test_nothing_is_compiled_outside_the_context():
    with compiled_islands():
        pass
    values = tf.ones([2, 3])
    traced = tf.function(outputs_and_gradients, autograph=False)
    graph = traced.get_concrete_function(values, values, tf.ones([2, 3], tf.bool))
    assert not compiled_functions(graph)


def test_no_work_is_given_to_libraries_that_are_not_safe_in_threads():
    @tf.function(autograph=False, jit_compile=True)
    def sums(values):
        return tf.reduce_sum(values, axis=0), tf.matmul(values, tf.ones([1024, 1]))

    optimized = sums.experimental_get_compiler_ir(tf.ones([1024, 1024]))(stage="optimized_hlo")
    assert "reduce" in optimized
    assert "ynn" not in optimized


def loss_and_gradients(model, *, islands, batch):
    """Of a pretraining step with dropout, traced as `TrainingStep` does."""

    @tf.function(autograph=False)
    def computed():
        variables = [variable.value for variable in model.trainable_variables]
        with tf.GradientTape() as tape:
            parts = PretrainingLoss()(model, batch, training=True, dropout_key=tf.constant([1, 2]))
            loss = tf.add_n(list(parts.losses.values()))
        gradients = tape.gradient(loss, variables)
        return loss, [tf.convert_to_tensor(gradient) for gradient in gradients]

    if not islands:
        return computed()
    with compiled_islands(), blocks_traced_once():
        assert compiled_functions(computed.get_concrete_function())
        return computed()


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "tolerance"), [("float32", 1e-5), ("mixed_bfloat16", 0.01)])
def test_a_pretraining_step_has_the_same_loss_and_gradients(policy, tolerance):
    keras.utils.set_random_seed(1)
    batch = full_batch(StepShape(rows=4, length=16, predictions=3), CONFIG.vocab_size)
    batch["input_mask"][1:, 9:] = 0
    tensors = {name: tf.constant(values) for name, values in batch.items()}
    model = BertPretrainingModel(CONFIG, dtype=policy)
    model.build_weights()
    loss, gradients = loss_and_gradients(model, islands=False, batch=tensors)
    compiled_loss, compiled = loss_and_gradients(model, islands=True, batch=tensors)
    np.testing.assert_allclose(compiled_loss, loss, rtol=tolerance)
    mine, expected = (np.concatenate([np.ravel(g) for g in each]) for each in (compiled, gradients))
    assert np.linalg.norm(mine - expected) < tolerance * np.linalg.norm(expected)
