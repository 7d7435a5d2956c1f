"""Tokens picked from rows, against NumPy."""

import numpy as np
from behavior.examples import fewer_examples
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.layers.self_attention import gather_positions


@given(
    batch=st.integers(1, 4),
    length=st.integers(1, 6),
    predictions=st.integers(1, 5),
    seed=st.integers(0, 1000),
)
@fewer_examples(0.25)
def test_gathering_equals_numpy(batch, length, predictions, seed):
    generator = np.random.default_rng(seed)
    hidden = generator.normal(size=(batch, length, 3)).astype(np.float32)
    positions = generator.integers(0, length, (batch, predictions))
    expected = np.take_along_axis(hidden, positions[:, :, None], axis=1)
    np.testing.assert_array_equal(gather_positions(hidden, positions), expected)
