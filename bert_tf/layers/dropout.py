"""Dropout whose mask is a pure function of a key, so that a resumed run draws the same masks.

A key (seed, step), the number of the place in the model (its stream) and the number of the element
determine a draw. So masks do not depend on the order of computation, on devices, or on the
compiler.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from bert_tf.base.errors import UsageError
from bert_tf.layers.activation import at_least_float32, custom_gradient

if TYPE_CHECKING:
    import tensorflow as tf

LEVELS = 256  # values of a draw
# Counters of a stream, more than any tensor needs.
_COUNTERS_PER_STREAM = 2**40
# Least number of words to draw if the shape is not static. Compiling a size takes a tenth of a
# second, drawing this many words a twentieth of a millisecond.
_LEAST_WORDS = 2**14
_THREEFRY = 2  # number of the generator in TensorFlow's operations


def keep_level(rate: float) -> int:
    """Return how many of the 256 values of an 8-bit draw keep an element.

    The rate becomes a multiple of 1/256 (0.1 becomes 26/256 = 0.1016), but never 0 or 1.
    """
    return min(LEVELS - 1, max(1, round(LEVELS * (1 - rate))))


def keep_scale(rate: float) -> float:
    """Return the factor of elements that are kept: the inverse of the real keep probability."""
    return LEVELS / keep_level(rate)


def require_dropout() -> None:
    """Raise UsageError on Keras backends other than TensorFlow, which draws the masks."""
    if keras.config.backend() != "tensorflow":
        raise UsageError(
            f"dropout needs Keras' TensorFlow backend, got {keras.config.backend()!r}; call the "
            "model with training=False, or set KERAS_BACKEND=tensorflow"
        )


def generator_state(dropout_key: tf.Tensor, stream: int | tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Return key and first counter of the masks of a place in the model, uint64 [1] each.

    Args:
        dropout_key: int32 [2].
        stream: number of the place, int or int64 [].
    """
    import tensorflow as tf

    key = tf.reshape(tf.bitcast(tf.cast(dropout_key, tf.int32), tf.uint64), [1])
    # Each place has a range of counters of its own.
    counter = tf.reshape(tf.cast(stream, tf.int64) * _COUNTERS_PER_STREAM, [1])
    return key, tf.bitcast(counter, tf.uint64)


def keep_mask(dropout_key: tf.Tensor, *, stream: int, rate: float, shape: tf.Tensor) -> tf.Tensor:
    """Draw a mask of elements to keep.

    Each 32-bit number of the counter-based Threefry generator (Salmon et al. 2011) gives four 8-bit
    draws. They are the same on every device, compiled by XLA or not.

    Args:
        dropout_key: int32 [2]; equal keys give equal masks.
        stream: number of the place in the model; other places draw independently.
        rate: fraction of elements to drop, above 0 and below 1; see `keep_level`.
        shape: int32 [rank].

    Returns:
        bool of that shape.
    """
    import tensorflow as tf

    key, counter = generator_state(dropout_key, stream)
    static_shape = tf.get_static_value(shape)
    if static_shape is None:
        size = tf.reduce_prod(shape)
        words = tf.reshape(next_power_of_two(tf.maximum(-(-size // 4), _LEAST_WORDS)), [1])
    else:
        size = math.prod(static_shape.tolist())
        words = tf.constant([-(-size // 4)])
    draws = tf.reshape(tf.bitcast(_random_words()(key, counter, words), tf.uint8), [-1])
    # The comparison is outside of the compiled function, in which XLA would draw a word again for
    # each of its four numbers.
    return tf.reshape(draws[:size], shape) < tf.constant(keep_level(rate), tf.uint8)


@functools.cache
def _random_words() -> Callable[[tf.Tensor, tf.Tensor, tf.Tensor], tf.Tensor]:
    """Return a function from key and counter, uint64 [1], and int32 [1] to uint32 [number]."""
    import tensorflow as tf

    @tf.function(autograph=False, jit_compile=True)
    def random_words(key: tf.Tensor, counter: tf.Tensor, words: tf.Tensor) -> tf.Tensor:
        return tf.raw_ops.StatelessRandomUniformFullIntV2(
            shape=words, key=key, counter=counter, alg=_THREEFRY, dtype=tf.uint32
        )

    return random_words


def next_power_of_two(number: tf.Tensor) -> tf.Tensor:
    """Return the smallest power of two >= number, int32 [], so that XLA compiles few shapes."""
    import tensorflow as tf

    logarithm = tf.math.log(tf.cast(tf.maximum(number, 1), tf.float64)) / math.log(2.0)
    # Larger than rounding errors of the logarithm of a power of two, and smaller than the distance
    # to the logarithm of the next number.
    exponent = tf.cast(tf.math.ceil(logarithm - 1e-10), tf.int32)
    return tf.bitwise.left_shift(1, exponent)


def dropped(inputs: Any, keep: Any | None, rate: float) -> Any:
    """Return inputs times `keep_scale` where `keep` is True, else 0.

    Args:
        inputs: float32 or wider, because bfloat16 would round the scale and change the expected
            output by a third of a percent.
        keep: bool of their shape; None changes nothing.
        rate: fraction of elements to drop, for the scale.
    """
    if keep is None:
        return inputs

    def factors() -> Any:
        return ops.cast(keep, inputs.dtype) * keep_scale(rate)

    # A custom gradient, so that the mask is kept for it, which is smaller than the factors.
    @custom_gradient
    def scale(inputs: Any) -> Any:
        def gradient(upstream: Any) -> Any:
            return upstream * factors()

        return inputs * factors(), gradient

    return scale(inputs)


@keras.saving.register_keras_serializable(package="bert_tf")
class StatelessDropout(keras.layers.Layer):
    """Drops elements and scales the others by the inverse of the real keep probability.

    Without a key the input passes unchanged, on any backend of Keras.

    Args:
        rate: fraction of elements to drop, from 0 to below 1; see `keep_level` for its rounding.
        stream: number of this place in the model, unlike all others with the same key.
    """

    def __init__(self, rate: float, *, stream: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.rate = rate
        self.stream = stream
        self.built = True

    def call(self, inputs: Any, dropout_key: tf.Tensor | None = None) -> Any:
        """Apply dropout to a float tensor of any shape.

        Args:
            inputs: float tensor.
            dropout_key: int32 [2]; None returns the inputs.

        Raises:
            UsageError: a key is given on another backend than TensorFlow.
        """
        wide = dropped(at_least_float32(inputs), self.kept(inputs, dropout_key), self.rate)
        return ops.cast(wide, inputs.dtype)

    def kept(self, inputs: Any, dropout_key: tf.Tensor | None) -> tf.Tensor | None:
        """Return the mask of elements of `inputs` to keep, for `dropped`; None for all."""
        if dropout_key is None or self.rate == 0:
            return None
        require_dropout()
        import tensorflow as tf

        return keep_mask(dropout_key, stream=self.stream, rate=self.rate, shape=tf.shape(inputs))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "rate": self.rate, "stream": self.stream}
