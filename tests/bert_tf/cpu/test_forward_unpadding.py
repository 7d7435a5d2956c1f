"""Rows without padding: which tokens they have, and the way back."""

import numpy as np
import pytest
import tensorflow as tf
from behavior.examples import fewer_examples
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from bert_tf.cpu.forward import first_token_context, unpadded
from bert_tf.layers.self_attention import SelfAttention, attention_bias

MASKS = arrays.arrays(
    np.bool_, st.tuples(st.integers(1, 5), st.integers(1, 12)), elements=st.booleans()
)


@given(MASKS)
def test_tokens_keep_their_order_and_padding_fills_up_to_a_multiple(mask):
    rows = unpadded(tf.constant(mask))
    places, numbers = rows.places.numpy(), rows.numbers.numpy()
    needed = mask.copy()
    needed[:, 0] = True
    assert len(places) == min(-(-needed.sum() // 8) * 8, mask.size)
    assert (np.diff(places) > 0).all()
    assert set(np.flatnonzero(needed)) <= set(places)
    expected = np.full(mask.size, -1)
    expected[places] = np.arange(len(places))
    np.testing.assert_array_equal(numbers.ravel(), expected)
    np.testing.assert_array_equal(rows.firsts, numbers[None, :, 0])
    np.testing.assert_array_equal(rows.position_ids, places[None] % mask.shape[1])


@pytest.mark.parametrize(
    ("tokens", "numbered"),
    [(1, 8), (505, 512), (513, 528), (1023, 1024), (1025, 1056), (3000, 3008)],
)
def test_a_doubling_has_32_numbers_of_tokens(tokens, numbered):
    mask = np.arange(4000)[None] < tokens
    assert len(unpadded(tf.constant(mask)).places) == numbered


@fewer_examples(0.4)
@given(MASKS)
def test_padded_rows_are_those_from_before(mask):
    values = np.random.default_rng(1).integers(1, 100, mask.shape).astype(np.int32)

    @tf.function(autograph=False)
    def there_and_back(mask, values):
        rows = unpadded(mask)
        hidden = tf.cast(rows.take(values), tf.float32)[..., None]
        return rows.padded(hidden)[..., 0], rows.numbers

    back, numbers = there_and_back(mask, values)
    np.testing.assert_array_equal(back, np.where(numbers.numpy() < 0, 0, values))


# Attention of the first token against that of all tokens.


def test_output_and_gradients_are_those_of_keys_and_values():
    generator = np.random.default_rng(2)
    layer = SelfAttention(
        num_heads=3, dropout_rate=0.0, dropout_stream=1, initializer_range=0.5, dtype="float32"
    )
    layer.build((None, None, 12))
    for variable in layer.trainable_variables:
        variable.assign(generator.normal(0, 0.5, variable.shape))
    hidden = tf.constant(generator.normal(size=(4, 7, 12)), tf.float32)
    bias = attention_bias(np.arange(7) < np.array([[7], [3], [1], [5]]))
    kernel, projection_bias = layer.query_key_value.kernel.value, layer.query_key_value.bias.value
    sources = [hidden, kernel, projection_bias]

    def ours():
        context = first_token_context(
            hidden[:, 0],
            hidden,
            kernel,
            projection_bias,
            lambda products: tf.nn.softmax(products / 2.0 + bias),  # 2, the root of the head size
            num_heads=3,
        )
        return layer.output_projection(context)

    def expected():
        return layer(hidden, bias, positions=tf.zeros([4, 1], tf.int32))[:, 0]

    found = []
    for output in (ours, expected):
        with tf.GradientTape() as tape:
            tape.watch(sources)
            values = output()
            loss = tf.reduce_sum(values * tf.reshape(tf.sin(1.0 + tf.range(48.0)), [4, 12]))
        found.append([values, *tape.gradient(loss, sources)])
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)
