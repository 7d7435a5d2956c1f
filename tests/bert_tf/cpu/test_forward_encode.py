"""The contract of the fast path: `encode` against the plain `BertEncoder.call`."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.config.bert import BertConfig
from bert_tf.cpu.forward import Forward, encode
from bert_tf.cpu.kernels import operation
from bert_tf.layers.encoder_inputs import EncoderInputs
from bert_tf.layers.implementation import PLAIN, computing_by
from bert_tf.models.encoder import BertEncoder

CONFIG = BertConfig(
    vocab_size=30,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=32,
    max_position_embeddings=20,
    initializer_range=0.3,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.3,  # whose draws are those of padded heads
)
ROWS, LENGTH = 4, 11
# The last row only fills a batch up.
MASK = np.arange(LENGTH) < np.array([[LENGTH], [3], [6], [0]])
SLOW = pytest.mark.slow  # compiles more of the same
MASKS = pytest.mark.parametrize("mask", [MASK, np.ones_like(MASK)], ids=["padded", "full"])


def inputs():
    generator = np.random.default_rng(3)
    return {
        "input_word_ids": generator.integers(1, CONFIG.vocab_size, (ROWS, LENGTH)).astype(np.int32),
        "input_type_ids": (np.arange(LENGTH)[None] > np.array([[5], [1], [9], [4]])).astype(
            np.int32
        ),
    }


def waves(values):
    """Another weight for every number."""
    return tf.reshape(tf.sin(tf.range(tf.cast(tf.size(values), tf.float32))), tf.shape(values))


def outputs_and_gradients(policy, *, has_position_ids, pooled_only, kernels):
    """A function of the mask: of a loss that every output but those on padding takes part in."""
    keras.utils.set_random_seed(1)
    model = BertEncoder(CONFIG, dtype=policy)
    model.build_weights()
    batch = inputs()
    if has_position_ids:
        generator = np.random.default_rng(4)
        batch["position_ids"] = generator.integers(0, 20, (ROWS, LENGTH)).astype(np.int32)
    tensors = {name: tf.constant(values) for name, values in batch.items()}
    unknown = {
        name: tf.TensorSpec([None] * tensor.shape.rank, tensor.dtype)
        for name, tensor in tensors.items()
    }

    @tf.function(autograph=False, input_signature=[unknown, tf.TensorSpec([None, None], tf.bool)])
    def computed(batch, mask):
        variables = [variable.value for variable in model.trainable_variables]
        with tf.GradientTape() as tape:
            outputs = model(
                batch["input_word_ids"],
                input_type_ids=batch["input_type_ids"],
                position_ids=batch.get("position_ids"),
                attention_mask=mask,
                pooled_only=pooled_only,
                training=True,
                dropout_key=tf.constant([1, 2]),
            )
            # Of rows with tokens: what the others give has no meaning, and no weight in any loss.
            is_row = tf.reduce_any(mask, axis=1)[:, None]
            read = {"pooled_output": tf.where(is_row, outputs["pooled_output"], 0)}
            if not pooled_only:
                states = outputs["sequence_output"]
                read["sequence_output"] = tf.where(mask[:, :, None], states, 0)
            read = {name: tf.cast(values, tf.float32) for name, values in read.items()}
            loss = tf.add_n([tf.reduce_sum(values * waves(values)) for values in read.values()])
        gradients = tape.gradient(loss, variables, unconnected_gradients="zero")
        tf.debugging.assert_all_finite(outputs["pooled_output"], "of rows without tokens, too")
        return read, [tf.convert_to_tensor(gradient) for gradient in gradients]

    forward = Forward(traces_once=True) if kernels else PLAIN

    def of_mask(mask):
        with computing_by(forward):
            return computed(tensors, tf.constant(mask))

    return of_mask


@pytest.fixture(scope="module")
def traced():
    """Return where tests keep traced functions, since masks share them."""
    return {}


@SLOW
@MASKS
@pytest.mark.parametrize(
    ("policy", "tolerance", "has_position_ids", "pooled_only", "piece_size"),
    [
        ("float32", 1e-5, False, True, 64),
        ("float32", 1e-5, False, False, 64),
        ("float32", 1e-5, True, False, operation.PIECE_SIZE),
        ("mixed_bfloat16", 0.03, False, True, operation.PIECE_SIZE),
        ("mixed_bfloat16", 0.03, True, False, 64),
    ],
)
def test_outputs_and_gradients_are_those_of_padded_rows(
    policy, tolerance, has_position_ids, pooled_only, mask, piece_size, traced, monkeypatch
):
    monkeypatch.setattr(operation, "PIECE_SIZE", piece_size)

    def computed(kernels):
        key = (policy, has_position_ids, pooled_only, piece_size if kernels else None)
        if key not in traced:
            traced[key] = outputs_and_gradients(
                policy,
                has_position_ids=has_position_ids,
                pooled_only=pooled_only,
                kernels=kernels,
            )
        return traced[key](mask)

    (expected, their_gradients), (outputs, gradients) = computed(False), computed(True)
    assert expected.keys() == outputs.keys()
    for name in expected:
        np.testing.assert_allclose(outputs[name], expected[name], atol=tolerance)
    mine, theirs = (
        np.concatenate([np.ravel(gradient) for gradient in each])
        for each in (gradients, their_gradients)
    )
    assert np.linalg.norm(mine - theirs) < tolerance * np.linalg.norm(theirs)


TEXTS = np.arange(LENGTH) // 4
# Rows without padding, where both draw dropout for the same places; and what of them is read.
READS = {
    "all": {},
    "no mask": {"attention_mask": None},
    "layers": {"output_hidden_states": True},
    "some": {"read_positions": np.int32([[1, 3], [2, 0], [3, 3], [10, 0]])},
    "packed": {
        "attention_mask": np.tile(TEXTS[:, None] == TEXTS, (ROWS, 1, 1)),
        "pooled_positions": np.int32([[0, 4, 8]] * ROWS),
        "read_positions": np.int32([[1, 5]] * ROWS),
    },
}


@pytest.mark.parametrize(
    ("read", "rate", "hidden_act"),
    [
        pytest.param(READS["all"], 0.3, "gelu", id="all"),
        *(pytest.param(READS[name], 0.3, "gelu", marks=SLOW, id=name) for name in list(READS)[1:]),
        pytest.param(READS["packed"], 0.0, "gelu", marks=SLOW, id="packed, no dropout"),
        pytest.param(READS["layers"], 0.3, "relu", marks=SLOW, id="layers, relu"),
    ],
)
def test_encode_is_the_call_of_plain_layers(read, rate, hidden_act):
    keras.utils.set_random_seed(1)
    config = dataclasses.replace(CONFIG, hidden_dropout_prob=rate, hidden_act=hidden_act)
    model = BertEncoder(config.replace(attention_probs_dropout_prob=rate), dtype="float32")
    model.build_weights()
    key = tf.constant([5, 6]) if rate else None
    arguments = {**inputs(), "attention_mask": np.ones_like(MASK), **read}
    arguments = {
        name: value if value is None or value is True else tf.constant(value)
        for name, value in arguments.items()
    }

    def plain():
        return model(**arguments, training=bool(rate), dropout_key=key)

    def fast():
        return encode(model, EncoderInputs(**arguments, dropout_key=key))

    @tf.function(autograph=False)
    def computed(call):
        with tf.GradientTape() as tape:
            outputs = call()
            loss = tf.add_n(
                [tf.reduce_sum(each * waves(each)) for each in tf.nest.flatten(outputs)]
            )
        variables = [variable.value for variable in model.trainable_variables]
        gradients = tape.gradient(loss, variables, unconnected_gradients="zero")
        return outputs, [tf.convert_to_tensor(gradient) for gradient in gradients]

    (outputs, gradients), (expected, their_gradients) = computed(fast), computed(plain)
    assert outputs.keys() == expected.keys()
    for mine, theirs in zip(*map(tf.nest.flatten, (outputs, expected)), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-5)
    for mine, theirs in zip(gradients, their_gradients, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-5 * max(1.0, np.abs(theirs).max()))


@pytest.mark.parametrize(
    "forward", [pytest.param(None, id="plain", marks=SLOW), pytest.param(Forward(), id="fast")]
)
@pytest.mark.parametrize("policy", ["float32", pytest.param("mixed_bfloat16", marks=SLOW)])
def test_padding_of_the_sequence_output_is_0(forward, policy):
    model = BertEncoder(CONFIG, dtype=policy)
    model.build_weights()
    with computing_by(forward or PLAIN):
        outputs = tf.function(model, autograph=False)(
            tf.constant(inputs()["input_word_ids"]), attention_mask=tf.constant(MASK)
        )
    states = tf.cast(outputs["sequence_output"], tf.float32).numpy()
    np.testing.assert_array_equal(states[~MASK], 0.0)
    assert np.abs(states[MASK]).min(axis=-1).max() > 0
    assert np.isfinite(tf.cast(outputs["pooled_output"], tf.float32)).all()
