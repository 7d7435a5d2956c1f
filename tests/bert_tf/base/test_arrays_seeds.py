"""Any whole number is a seed, and one that fits is left alone."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bert_tf.base.arrays import int32_seed, unsigned_seed
from bert_tf.base.kernels import seed_key
from bert_tf.data.rows.encoded_rows import epoch_batches


@settings(deadline=None)  # the first call compiles
@given(st.integers())
@example(-1)
@example(2**31)
@example(2**64 + 1)
def test_any_whole_number_suits_every_generator(seed):
    assert 0 <= unsigned_seed(seed, 32) < 2**32
    # NumPy casts by two's complement too.
    assert int32_seed(seed) == np.array(unsigned_seed(seed, 64), np.uint64).astype(np.int32)
    seed_key(seed, "rows")
    epoch_batches(np.ones(3, int), batch_size=2, seed=seed, epoch=0)


@given(st.integers(0, 2**31 - 1))
def test_a_seed_that_fits_is_left_alone(seed):
    assert unsigned_seed(seed, 32) == unsigned_seed(seed, 64) == int32_seed(seed) == seed
