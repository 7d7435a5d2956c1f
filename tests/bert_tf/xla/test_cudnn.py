"""Attention by cuDNN: its definition, without a GPU; test_forward_programs.py counts its calls.

No test here runs cuDNN. `defined_call` computes in TensorFlow operations what a call computes, so
that everything around the calls runs: masks, shapes, gradients, whole models.
"""

import collections
import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from behavior.packed_batches import CONFIG, ROWS, batch_of, pretraining_model

from bert_tf.layers.implementation import PLAIN, computing_by
from bert_tf.models.encoder import BertEncoder
from bert_tf.pretraining.loss import PretrainingLoss
from bert_tf.xla import cudnn
from bert_tf.xla.forward import XlaForward

FUSED = XlaForward(fuses_attention=True)


def defined_call(operands, module, results):
    """Return cuDNN's result by the definition at the head of `bert_tf.xla.cudnn`."""
    is_backward, has_bias = "Backward" in module, "ScaleBias" in module
    query, key, value, *rest = operands
    if is_backward:
        statistics, upstream, *rest = rest
        bias = rest.pop(0) if has_bias else None
        output, *lengths = rest
    else:
        bias = rest.pop(0) if has_bias else None
        lengths = rest
    scores = tf.einsum("bqhs,bkhs->bhqk", query, key) * query.shape[-1] ** -0.5
    if has_bias:
        scores += bias
    else:
        is_key = tf.sequence_mask(lengths[1], key.shape[1])[:, None, None]
        scores = tf.where(is_key, scores, -np.inf)
    if not is_backward:
        statistics = tf.reduce_logsumexp(scores, axis=-1)
        probabilities = tf.exp(scores - statistics[..., None])
        return tf.einsum("bhqk,bkhs->bqhs", probabilities, value), statistics
    # Dao et al. 2022 (FlashAttention), appendix B.4: the scores are computed again.
    probabilities = tf.exp(scores - statistics[..., None])
    along = tf.einsum("bqhs,bkhs->bhqk", upstream, value)
    total = tf.einsum("bqhs,bqhs->bhq", upstream, output)[..., None]
    slopes = probabilities * (along - total) * query.shape[-1] ** -0.5
    return [
        tf.einsum("bhqk,bkhs->bqhs", slopes, key),
        tf.einsum("bhqk,bqhs->bkhs", slopes, query),
        tf.einsum("bhqk,bqhs->bkhs", probabilities, upstream),
    ]


@pytest.fixture
def by_definition(monkeypatch):
    """Have calls computed by their definition, also in float32."""
    called = collections.Counter()

    def call(operands, module, results):
        called[re.search(r"__cudnn\$(\w+)", module)[1]] += 1
        return defined_call(operands, module, results)

    monkeypatch.setattr(cudnn, "_call_module", call)
    monkeypatch.setitem(cudnn.ELEMENT_TYPES, tf.float32, "f32")
    return called


def loss_and_gradients(model, batch, form):
    variables = [variable.value for variable in model.trainable_variables]
    with computing_by(form), tf.GradientTape() as tape:
        tape.watch(variables)
        key = tf.constant([1, 2])
        parts = PretrainingLoss()(model, batch, training=True, dropout_key=key)
        loss = tf.add_n(list(parts.losses.values()))
    return loss, [tf.convert_to_tensor(each) for each in tape.gradient(loss, variables)]


@pytest.mark.parametrize("is_packed", [False, True])
def test_losses_and_gradients_are_those_of_the_plain_layers(by_definition, is_packed):
    model, batch = pretraining_model(), batch_of(is_packed=is_packed)
    loss, gradients = loss_and_gradients(model, batch, FUSED)
    name = "fmhaScaleBiasSoftmax" if is_packed else "fmhaSoftmax"
    assert by_definition == {name: 2, f"{name}Backward": 2}, "a pair for every layer"
    expected_loss, expected = loss_and_gradients(model, batch, PLAIN)
    assert by_definition.total() == 4
    # Sums of a few hundred products, in another order.
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-5)
    for gradient, other in zip(gradients, expected, strict=True):
        scale = np.abs(other).max()
        np.testing.assert_allclose(gradient, other, atol=1e-4 * scale + 1e-7)


def test_hidden_states_are_those_of_the_plain_layers_also_on_padding(by_definition):
    keras.utils.set_random_seed(1)
    encoder = BertEncoder(CONFIG)
    encoder.build_weights()
    batch = batch_of(is_packed=False)
    arguments = (batch["input_word_ids"], batch["input_type_ids"], batch["input_mask"])
    expected = encoder(*arguments, output_hidden_states=True)["hidden_states"]
    with computing_by(FUSED):
        found = encoder(*arguments, output_hidden_states=True)["hidden_states"]
    assert by_definition.total() == CONFIG.num_hidden_layers
    for states, others in zip(found, expected, strict=True):
        np.testing.assert_allclose(states, others, atol=1e-4)


def test_a_row_without_tokens_has_finite_states(by_definition):
    encoder = BertEncoder(CONFIG)
    encoder.build_weights()
    batch = batch_of(is_packed=False)
    mask = batch["input_mask"] * tf.constant([[1], [0], [1]])
    with computing_by(FUSED):
        outputs = encoder(batch["input_word_ids"], attention_mask=mask)
    assert np.isfinite(outputs["pooled_output"]).all()


@pytest.mark.parametrize(
    ("changes", "policy"),
    [
        ({"attention_probs_dropout_prob": 0.1}, "mixed_bfloat16"),
        ({}, "float32"),
        ({"hidden_size": 24, "num_attention_heads": 2}, "mixed_bfloat16"),
        ({"hidden_size": 272, "num_attention_heads": 2}, "mixed_bfloat16"),
    ],
    ids=["dropout", "float32", "head-size", "large-heads"],
)
def test_what_cudnn_cannot_compute_is_computed_plainly(monkeypatch, changes, policy):
    def fail(*_):
        raise AssertionError("called")

    monkeypatch.setattr(cudnn, "_call_module", fail)
    encoder = BertEncoder(CONFIG.replace(**changes), dtype=policy)
    encoder.build_weights()
    ids = batch_of(is_packed=False)["input_word_ids"]
    with computing_by(FUSED):
        encoder(ids, training=True, dropout_key=tf.constant([1, 2]))


@pytest.mark.parametrize(("queries", "keys"), [(5, 12), (4, 7), (3, 3), (4, 6)])
def test_odd_numbers_with_a_bias_are_made_even(by_definition, monkeypatch, queries, keys):
    """cuDNN has no gradients for them; outputs and gradients are those of the odd numbers."""
    sizes = []
    call = cudnn._call_module

    def recorded(operands, module, results):
        sizes.append((operands[0].shape[1], operands[1].shape[1]))
        return call(operands, module, results)

    monkeypatch.setattr(cudnn, "_call_module", recorded)
    random = np.random.default_rng(2)
    query, key, value = (
        tf.constant(random.normal(size=(ROWS, count, 4, 8)).astype(np.float32))
        for count in (queries, keys, keys)
    )
    is_hidden = random.random((ROWS, 1, queries, keys)) < 0.3
    is_hidden[..., 0] = False
    bias = tf.constant(np.where(is_hidden, cudnn.HIDDEN_KEY, 0.0).astype(np.float32))
    upstream = random.normal(size=(ROWS, queries, 4, 8)).astype(np.float32)

    def plain(query, key, value):
        scores = tf.einsum("bqhs,bkhs->bhqk", query, key) * 8**-0.5 + bias
        return tf.einsum("bhqk,bkhs->bqhs", tf.nn.softmax(scores), value)

    def with_gradients(attend):
        with tf.GradientTape() as tape:
            tape.watch([query, key, value])
            output = attend(query, key, value)
        return [output, *tape.gradient(output, [query, key, value], upstream)]

    found = with_gradients(lambda *tensors: cudnn.attention(*tensors, bias=bias))
    for ours, theirs in zip(found, with_gradients(plain), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    assert sizes == [(queries + queries % 2, keys + keys % 2)] * 2


def test_unknown_shapes_are_refused_in_words():
    @tf.function(input_signature=[tf.TensorSpec([2, None, 4, 8], tf.bfloat16)])
    def attend(query):
        return cudnn.attention(query, query, query, lengths=tf.constant([1, 2]))

    with pytest.raises(ValueError, match="needs static shapes"):
        attend.get_concrete_function()
