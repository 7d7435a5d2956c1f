"""AdamW that writes to the memory of variables, against Keras' optimizer."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from behavior.rounding import assert_same_but_for_rounding

from bert_tf.cpu.backend import global_norm, joined, summed
from bert_tf.cpu.kernels import workers
from bert_tf.training.optimizers import AdamW, Lamb

RATE = 0.01
SLOW = pytest.mark.slow  # traces more of the same
# No whole number of the kernel's blocks, and large enough for it.
SHAPE = (2**9 + 1, 2**8 + 3)


def normal(seed):
    return tf.constant(np.random.default_rng(seed).normal(size=SHAPE), tf.float32)


def gradient_of(seed, dtype=tf.float32):
    """Return gradients from far below epsilon to far above."""
    return tf.cast(normal(seed) * np.logspace(-9, 0, SHAPE[1]), dtype)


def one(seed):
    return gradient_of(seed)


def two(seed):
    return gradient_of(seed), gradient_of(seed + 100)


def two_of_bfloat16(seed):
    return gradient_of(seed, tf.bfloat16), gradient_of(seed + 100, tf.bfloat16)


def made(weights, *, copies=None, **changes):
    values = {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-6, "weight_decay": 0.1, **changes}
    optimizer = AdamW(**values)
    optimizer.build(weights)
    optimizer.update_in_place(copies or {})
    return optimizer


def is_in_place(optimizer, *, dtype="float32", shape=SHAPE, copy=None):
    weight = keras.Variable(np.zeros(shape, np.float32), dtype=dtype, name="kernel")
    optimizer.build([weight])
    copies = {} if copy is None else {0: tf.Variable(tf.zeros(shape, copy))}
    return 0 in optimizer.update_in_place(copies)


def test_which_variables_are_written_to_in_place():
    values = {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-6, "weight_decay": 0.1}
    assert is_in_place(AdamW(**values))
    assert is_in_place(AdamW(**values), copy=tf.bfloat16)
    assert not is_in_place(AdamW(**values), copy=tf.float16)
    assert not is_in_place(AdamW(**values), dtype="bfloat16")
    assert not is_in_place(AdamW(**values), shape=(8, 8))
    assert not hasattr(Lamb(**values), "update_in_place")
    optimizer = AdamW(**values)
    optimizer.build([keras.Variable(np.zeros(SHAPE, np.float32), name="kernel")])
    assert optimizer.in_place is None


def take_steps(optimizer, gradients, *, applied=1.0, factor=0.25):
    """Steps as the training step takes them: one function for all."""

    @tf.function(autograph=False)
    def steps():
        optimizer.in_place.take_memory()
        for gradient in gradients:
            optimizer.prepare_step(
                tf.constant(applied), tf.constant(RATE), tf.constant(factor, tf.float32)
            )
            optimizer.apply([gradient])

    steps()


@pytest.mark.parametrize("cores", [1, 3])
@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize(
    "gradient", [one, *(pytest.param(each, marks=SLOW) for each in (two, two_of_bfloat16))]
)
def test_updates_are_those_of_keras(gradient, decay, cores, monkeypatch):
    monkeypatch.setattr(workers, "usable_cores", lambda: cores)
    workers.board_address.cache_clear()
    weight, expected = (keras.Variable(normal(9), name="kernel") for _ in range(2))
    theirs = keras.optimizers.AdamW(
        learning_rate=RATE, beta_1=0.9, beta_2=0.999, epsilon=1e-6, weight_decay=decay
    )
    theirs.build([expected])
    copy = tf.Variable(tf.zeros(SHAPE, tf.bfloat16), trainable=False)
    optimizer = made([weight], copies={0: copy}, weight_decay=decay)
    assert 0 in optimizer.in_place
    take_steps(optimizer, [gradient(step) for step in range(3)])
    workers.board_address.cache_clear()
    for step in range(3):
        # Keras adds it before the correction of bias.
        theirs.epsilon = 1e-6 * np.sqrt(1 - 0.999 ** (step + 1))
        parts = gradient(step) if isinstance(gradient(step), tuple) else [gradient(step)]
        theirs.apply([tf.add_n([tf.cast(part, tf.float32) for part in parts]) / 4])
    assert int(optimizer.iterations.numpy()) == 3
    np.testing.assert_allclose(weight.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(copy.numpy(), tf.cast(weight.value, tf.bfloat16).numpy())


def test_a_skipped_step_changes_nothing_whatever_the_gradient():
    weight = keras.Variable(normal(9), name="kernel")
    copy = tf.Variable(tf.cast(weight.value, tf.bfloat16), trainable=False)
    optimizer = made([weight], copies={0: copy})
    take_steps(optimizer, [one(0)])
    watched = [weight, *optimizer._momentums, *optimizer._velocities, copy, optimizer.iterations]
    before = [variable.numpy() for variable in watched]
    take_steps(optimizer, [tf.fill(SHAPE, np.nan)], applied=0.0, factor=np.nan)
    for variable, value in zip(watched, before, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)


def test_what_shared_the_memory_of_weights_stays_as_it_was():
    start = normal(9)
    weight, other = (keras.Variable(start, name="kernel") for _ in range(2))
    optimizer = made([weight])
    take_steps(optimizer, [one(0)])
    taken = weight.numpy()
    read = tf.convert_to_tensor(weight.value)
    other.assign(weight.value)
    moment = tf.convert_to_tensor(optimizer._momentums[0].value)
    moment_taken = moment.numpy()
    take_steps(optimizer, [one(1)])
    assert np.any(weight.numpy() != taken)
    np.testing.assert_array_equal(read, taken)
    np.testing.assert_array_equal(other.numpy(), taken)
    np.testing.assert_array_equal(moment, moment_taken)


@pytest.mark.parametrize("gradient", [one, two, two_of_bfloat16])
def test_the_norm_of_parts_is_that_of_their_sum(gradient):
    gradients = [gradient(0), tf.constant([3.0, 4.0])]
    found = tf.function(lambda: global_norm(gradients), autograph=False)()
    parts = gradients[0] if isinstance(gradients[0], tuple) else [gradients[0]]
    whole = sum(tf.cast(part, tf.float64) for part in parts)
    expected = np.sqrt(np.sum(whole.numpy() ** 2) + 25.0)
    assert float(found) == pytest.approx(expected, rel=1e-6)
    np.testing.assert_array_equal(summed(gradients[0]), tf.cast(whole, tf.float32))


def test_parts_are_left_alone_where_two_large_ones_are_added_up_in_a_pass_that_comes_later():
    assert joined(two(0))[1].shape == SHAPE
    small = [tf.cast([1.0, 2.0], tf.bfloat16) for _ in range(2)]
    np.testing.assert_array_equal(joined(small), [2.0, 4.0])
    three = [one(seed) for seed in range(3)]
    np.testing.assert_allclose(joined(three), sum(part.numpy() for part in three), rtol=1e-5)


def rows(seed, *indices):
    """Slices with a row per index, some of them twice."""
    values = np.random.default_rng(seed).normal(size=(len(indices), SHAPE[1])).astype(np.float32)
    return tf.IndexedSlices(tf.constant(values), tf.constant(indices), tf.constant(SHAPE))


def dense(slices):
    total = np.zeros(SHAPE, np.float32)
    np.add.at(total, slices.indices.numpy(), slices.values.numpy())
    return tf.constant(total)


@pytest.fixture
def looked_up():
    return rows(0, 3, 3, 500), rows(1, 0, 512, 0, 0), rows(2, 7)


@pytest.mark.parametrize("cores", [1, 3])
@pytest.mark.parametrize("decay", [0.1, pytest.param(0.0, marks=SLOW)])
def test_a_table_of_which_few_rows_have_gradients_is_updated_as_from_a_gradient_of_all(
    looked_up, decay, cores, monkeypatch
):
    monkeypatch.setattr(workers, "usable_cores", lambda: cores)
    workers.board_address.cache_clear()
    table, expected = (keras.Variable(normal(9), name="table") for _ in range(2))
    optimizer, other = (made([weight], weight_decay=decay) for weight in (table, expected))
    assert optimizer.in_place.takes_rows(0)
    # The second function finds which rows have moments.
    for steps in (looked_up[:2], looked_up[2:]):
        take_steps(optimizer, [joined([slices]) for slices in steps])
        take_steps(other, [dense(slices) for slices in steps])
    workers.board_address.cache_clear()
    assert_same_but_for_rounding(table.numpy(), expected.numpy(), roundings=3 * 10)
    for name in ("_momentums", "_velocities"):
        found, wanted = (getattr(each, name)[0].numpy() for each in (optimizer, other))
        assert_same_but_for_rounding(found, wanted, roundings=3 * 4)
        assert set(np.flatnonzero(found.any(axis=1))) == {0, 3, 7, 500, 512}


def test_rows_of_parts_are_added_up_once(looked_up):
    parts = looked_up[:2]
    gradient = joined(parts)
    assert sorted(gradient.indices.numpy()) == [0, 3, 500, 512]
    whole = sum(dense(slices).numpy().astype(np.float64) for slices in parts)
    np.testing.assert_allclose(summed(gradient), whole, rtol=1e-5, atol=1e-6)
    assert float(global_norm([gradient])) == pytest.approx(np.linalg.norm(whole), rel=1e-6)


def test_a_skipped_step_changes_no_row_whatever_the_gradient(looked_up):
    table = keras.Variable(normal(9), name="table")
    optimizer = made([table])
    take_steps(optimizer, looked_up[2:])
    watched = [table, *optimizer._momentums, *optimizer._velocities]
    before = [variable.numpy() for variable in watched]
    slices = looked_up[0]
    bad = tf.IndexedSlices(slices.values * np.nan, slices.indices, slices.dense_shape)
    take_steps(optimizer, [joined([bad])], applied=0.0, factor=np.nan)
    for variable, value in zip(watched, before, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)
