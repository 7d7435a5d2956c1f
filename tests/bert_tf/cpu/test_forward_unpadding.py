"""Rows without padding: which tokens they have, and the way back."""

import numpy as np
import pytest
import tensorflow as tf
from behavior.examples import fewer_examples
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from bert_tf.cpu.forward import unpadded

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
