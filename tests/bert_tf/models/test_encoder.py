"""The encoder: packing, masks, dropout keys, shapes known late, policies, saving."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.config.bert import BertConfig
from bert_tf.models.encoder import BertEncoder

CONFIG = BertConfig(
    vocab_size=30,
    hidden_size=8,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=16,
    max_position_embeddings=20,
    initializer_range=0.3,
)
# Keras 3 saves weights through a NumPy conversion that NumPy 2 warns of.
KERAS_SAVES = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
KEY = np.int32([3, 4])


@pytest.fixture(scope="module")
def encoder():
    model = BertEncoder(CONFIG)
    model.build_weights()
    return model


def random_ids(*shape):
    return np.random.default_rng(0).integers(1, CONFIG.vocab_size, shape).astype(np.int32)


def test_packed_texts_are_encoded_as_if_alone(encoder):
    lengths = [5, 2, 7, 4]
    ids = random_ids(sum(lengths) + 2)
    segments = np.arange(len(ids)) % 2
    text = np.repeat(np.arange(len(lengths) + 1), [*lengths, 2])
    positions = np.concatenate([np.arange(length) for length in [*lengths, 2]])
    mask = (text[:, None] == text[None, :]) & (text < len(lengths))[None, :]
    packed = encoder(
        ids[None],
        input_type_ids=segments[None],
        attention_mask=mask[None],
        position_ids=positions[None],
    )["sequence_output"][0]
    start = 0
    for length in lengths:
        here = slice(start, start + length)
        alone = encoder(ids[None, here], input_type_ids=segments[None, here])["sequence_output"]
        np.testing.assert_allclose(packed[here], alone[0], atol=1e-5)
        start += length


def test_padding_changes_nothing(encoder):
    ids = random_ids(2, 12)
    mask = np.arange(12)[None, :] < np.array([[12], [7]])
    padded = encoder(ids, attention_mask=mask)
    alone = encoder(ids[1:, :7])
    np.testing.assert_allclose(
        padded["sequence_output"][1, :7], alone["sequence_output"][0], atol=1e-5
    )
    np.testing.assert_allclose(padded["pooled_output"][1], alone["pooled_output"][0], atol=1e-5)


def test_defaults_are_no_mask_and_the_first_segment(encoder):
    ids = random_ids(2, 6)
    explicit = encoder(
        ids,
        input_type_ids=np.zeros_like(ids),
        attention_mask=np.ones((2, 6, 6), bool),
        position_ids=np.arange(6)[None, :].repeat(2, 0),
    )
    keras.tree.map_structure(
        lambda ours, theirs: np.testing.assert_allclose(ours, theirs, atol=1e-5),
        encoder(ids),
        explicit,
    )


def test_hidden_states_end_with_the_sequence_output(encoder):
    outputs = encoder(random_ids(1, 4), output_hidden_states=True)
    assert len(outputs["hidden_states"]) == CONFIG.num_hidden_layers + 1
    np.testing.assert_array_equal(outputs["hidden_states"][-1], outputs["sequence_output"])
    assert "hidden_states" not in encoder(random_ids(1, 4))


SEQUENCES = {
    "sequence_ids": np.repeat([[0, 1, 2]], 3, 0).repeat([2, 3, 2], 1),
    "cls_positions": np.array([[0, 2, 5]] * 3, np.int32),
}


@pytest.mark.slow
@pytest.mark.parametrize("packed", [{}, SEQUENCES], ids=["one text a row", "packed"])
def test_what_heads_read_is_computed_as_all_tokens_are(encoder, packed):
    """Outputs and gradients of the tokens read, from the last block that computes them alone."""
    inputs = {"input_word_ids": random_ids(3, 7), **packed}
    if not packed:
        inputs["input_mask"] = np.arange(7)[None, :] < np.array([[7], [4], [5]])
    positions = np.array([[1, 3], [2, 0], [3, 3]], np.int32)

    def outputs_and_gradients(read, **arguments):
        with tf.GradientTape() as tape:
            encoded = encoder.encode_inputs(inputs, training=False, dropout_key=None, **arguments)
            outputs = read(encoded)
            loss = tf.add_n([tf.reduce_sum(tf.sin(output)) for output in outputs])
        variables = [variable.value for variable in encoder.trainable_variables]
        gradients = tape.gradient(loss, variables, unconnected_gradients="zero")
        return outputs, [tf.convert_to_tensor(gradient) for gradient in gradients]

    def all_tokens(encoded):
        return encoded["pooled_output"], tf.gather(
            encoded["sequence_output"], positions, batch_dims=1
        )

    def check(got, expected):
        keras.tree.map_structure(
            lambda ours, theirs: np.testing.assert_allclose(ours, theirs, atol=2e-5), got, expected
        )

    check(
        outputs_and_gradients(
            lambda encoded: (encoded["pooled_output"], encoded["sequence_output"]),
            read_positions=positions,
        ),
        outputs_and_gradients(all_tokens),
    )
    check(
        outputs_and_gradients(lambda encoded: tuple(encoded.values()), pooled_only=True),
        outputs_and_gradients(lambda encoded: (encoded["pooled_output"],)),
    )


def test_the_pooler_is_optional():
    model = BertEncoder(CONFIG, has_pooler=False)
    model.build_weights()
    assert set(model(random_ids(1, 4))) == {"sequence_output"}
    assert not any("pooler" in variable.path for variable in model.variables)


def encode(model, ids, **arguments):
    return model(ids, **arguments)["sequence_output"].numpy()


@pytest.mark.slow
def test_the_dropout_key_decides_the_masks(encoder):
    ids = random_ids(2, 6)
    first = encode(encoder, ids, training=True, dropout_key=KEY)
    np.testing.assert_array_equal(encode(encoder, ids, training=True, dropout_key=KEY), first)
    assert not np.array_equal(encode(encoder, ids, training=True, dropout_key=KEY + 1), first)
    assert not np.array_equal(encode(encoder, ids), first)
    np.testing.assert_array_equal(encode(encoder, ids, dropout_key=KEY), encode(encoder, ids))


@pytest.mark.slow
def test_without_a_key_every_training_call_draws_another():
    keras.utils.set_random_seed(5)
    model = BertEncoder(CONFIG)
    ids = random_ids(2, 6)
    first, second = (encode(model, ids, training=True) for _ in range(2))
    assert not np.array_equal(first, second)
    keras.utils.set_random_seed(5)
    np.testing.assert_array_equal(encode(BertEncoder(CONFIG), ids, training=True), first)


@pytest.mark.slow
def test_graphs_of_unknown_shape_and_xla_agree_with_eager(encoder):
    ids = random_ids(2, 7)
    mask = np.arange(7)[None, :] < np.array([[7], [4]])
    expected = encode(encoder, ids, attention_mask=mask, training=True, dropout_key=KEY)

    def call(ids, mask, key):
        outputs = encoder(ids, attention_mask=mask, training=True, dropout_key=key)
        return outputs["sequence_output"]

    unknown = [tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None, None], tf.bool)]
    graph = tf.function(call, input_signature=[*unknown, tf.TensorSpec([2], tf.int32)])
    for compiled in (graph, tf.function(call, jit_compile=True)):
        np.testing.assert_allclose(compiled(ids, mask, KEY), expected, atol=1e-5)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
@pytest.mark.parametrize("is_global", [True, False])
def test_mixed_precision_computes_low_and_stores_float32(policy, is_global):
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy if is_global else "float32")
    try:
        model = BertEncoder(CONFIG, dtype=None if is_global else policy)
        model.build_weights()
    finally:
        keras.config.set_dtype_policy(before)
    mask = np.array([[1] * 6, [0] * 6])
    outputs = model(random_ids(2, 6), attention_mask=mask, training=True, dropout_key=KEY)
    assert outputs["sequence_output"].dtype == model.compute_dtype == policy.removeprefix("mixed_")
    assert np.isfinite(tf.cast(outputs["sequence_output"], tf.float32)).all()
    assert {weight.dtype for weight in model.trainable_weights} == {"float32"}


@KERAS_SAVES
def test_keras_saves_and_loads_it(tmp_path, encoder):
    encoder.save(tmp_path / "encoder.keras")
    loaded = keras.saving.load_model(tmp_path / "encoder.keras")
    assert loaded.config == CONFIG
    ids = random_ids(2, 5)
    np.testing.assert_array_equal(encode(loaded, ids), encode(encoder, ids))


def test_no_two_weights_start_alike(encoder):
    kernels = [v.numpy().ravel()[:8] for v in encoder.trainable_weights if "kernel" in v.path]
    assert len(np.unique(np.stack(kernels), axis=0)) == len(kernels)
