"""Sums of rows with equal ids, in an order that does not depend on the device."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.xla.embedding_gradient import sorted_sums


@pytest.mark.parametrize("jit_compile", [pytest.param(True, marks=pytest.mark.slow), False])
@pytest.mark.parametrize(("count", "size"), [(1, 3), (7, 2), (64, 5), (33, 100)])
def test_rows_with_equal_ids_are_added_up(count, size, jit_compile):
    random = np.random.default_rng(count)
    ids = random.integers(0, size, count, np.int32)
    values = random.integers(-9, 9, (count, 3)).astype(np.float32)
    expected = np.zeros((size, 3), np.float32)
    np.add.at(expected, ids, values)
    function = tf.function(sorted_sums, jit_compile=jit_compile, autograph=False)
    np.testing.assert_array_equal(function(tf.constant(values), tf.constant(ids), size), expected)
