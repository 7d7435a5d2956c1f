import keras
import numpy as np
import pytest
import tensorflow as tf
from behavior.loop_runs import losses, run_until
from behavior.regression_task import ROWS, make_loop
from behavior.rounding import assert_same_but_for_rounding

from bert_tf.training.weight_average import WeightAverages


@pytest.mark.parametrize("decay", [0.5, 0.99])
def test_averages_are_those_of_tensorflow(decay):
    generator = np.random.default_rng(0)
    weight = keras.Variable(generator.normal(size=(3,)).astype(np.float32))
    averages = WeightAverages([weight], decay=decay, strategy=tf.distribute.get_strategy())
    theirs = tf.Variable(weight.value)
    number = tf.Variable(0.0)
    average = tf.train.ExponentialMovingAverage(decay, num_updates=number)
    average.apply([theirs])
    for step in range(30):
        value = generator.normal(size=(3,)).astype(np.float32)
        weight.assign(value)
        theirs.assign(value)
        number.assign(step)
        averages.update(tf.constant(step), tf.constant(1.0))
        average.apply([theirs])
    np.testing.assert_allclose(
        averages.variables[0].numpy(), average.average(theirs).numpy(), rtol=1e-5
    )


def test_a_skipped_step_leaves_the_averages():
    weight = keras.Variable([1.0])
    averages = WeightAverages([weight], decay=0.5, strategy=tf.distribute.get_strategy())
    weight.assign([3.0])
    averages.update(tf.constant(100), tf.constant(0.0))
    np.testing.assert_array_equal(averages.variables[0].numpy(), [1.0])


def test_weights_come_back_whatever_happens_inside():
    weight = keras.Variable([1.0])
    averages = WeightAverages([weight], decay=0.5, strategy=tf.distribute.get_strategy())
    weight.assign([3.0])
    with pytest.raises(KeyError), averages.in_place_of_weights():
        np.testing.assert_array_equal(weight.numpy(), [1.0])
        raise KeyError
    np.testing.assert_array_equal(weight.numpy(), [3.0])


@pytest.mark.slow
def test_evaluations_see_the_averages_and_training_does_not(tmp_path):
    seen = {}

    def evaluate(step, notes):
        seen[step] = loop.variables["model/0000"].numpy()
        return {"loss": 1.0}

    make_loop(run_directory=tmp_path / "plain").run()
    loop = make_loop(
        run_directory=tmp_path / "averaged", ema_decay=0.9, eval_every=4, evaluate=evaluate
    )
    loop.run()
    found, expected = (
        [line["loss"] for line in losses(tmp_path / name).values()]
        for name in ("averaged", "plain")
    )
    assert len(expected) == 12
    assert_same_but_for_rounding(found, expected, roundings=12 * ROWS * 4)
    np.testing.assert_array_equal(seen[12], loop.variables["average/0000"].numpy())
    assert np.abs(seen[12] - loop.variables["model/0000"].numpy()).max() > 1e-4


@pytest.mark.slow
def test_a_resumed_run_has_the_averages_of_one_that_was_not(tmp_path):
    whole = make_loop(ema_decay=0.9)
    whole.run()
    run_until(make_loop(run_directory=tmp_path, ema_decay=0.9, steps_per_call=1), 5)
    resumed = make_loop(run_directory=tmp_path, ema_decay=0.9)
    assert resumed.run().resumed_from == 5
    for name in ("average/0000", "average/0003", "model/0000"):
        np.testing.assert_array_equal(
            resumed.variables[name].numpy(), whole.variables[name].numpy()
        )
