"""Dropout whose mask is a pure function of a key, so that a resumed run draws the same masks."""

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

LEVELS = 256
_COUNTERS_PER_STREAM = 2**40
# Drawn at least where shapes differ: a tenth of a second to compile each size, a twentieth of a
# millisecond to draw this many.
_LEAST_WORDS = 2**14
_THREEFRY = 2  # its number in TensorFlow's operations


def keep_level(rate: float) -> int:
    """Number of the 256 values of an 8-bit draw that keep an element.

    The rate becomes a multiple of 1/256 (0.1 becomes 26/256 = 0.1016), but never 0 or 1.
    """
    return min(LEVELS - 1, max(1, round(LEVELS * (1 - rate))))


def keep_scale(rate: float) -> float:
    return LEVELS / keep_level(rate)


def require_dropout() -> None:
    """Raises UsageError on Keras backends other than TensorFlow, which draws the masks."""
    if keras.config.backend() != "tensorflow":
        raise UsageError(
            f"dropout needs Keras' TensorFlow backend, got {keras.config.backend()!r}; call the "
            "model with training=False, or set KERAS_BACKEND=tensorflow"
        )


def generator_state(dropout_key: tf.Tensor, stream: int | tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Key and first counter of the masks of a place in the model, uint64 [1] each.

    `dropout_key` is int32[2]; `stream`, an int or int64 [], is the number of the place.
    """
    import tensorflow as tf

    key = tf.reshape(tf.bitcast(tf.cast(dropout_key, tf.int32), tf.uint64), [1])
    # A place draws from a run of counters of its own, which is longer than it needs.
    counter = tf.reshape(tf.cast(stream, tf.int64) * _COUNTERS_PER_STREAM, [1])
    return key, tf.bitcast(counter, tf.uint64)


def keep_mask(dropout_key: tf.Tensor, *, stream: int, rate: float, shape: tf.Tensor) -> tf.Tensor:
    """Draws a bool mask, of the tensor `shape`, of elements to keep.

    Each 32-bit number of the counter-based Threefry generator (Salmon et al. 2011) gives four 8-bit
    draws, the same on every device, in a graph that XLA compiles and in one that it does not.

    Args:
        dropout_key: int32[2]; the same key gives the same masks.
        stream: number of the place in the model; other places draw independently.
        rate: fraction of elements to drop, over 0 and below 1; see `keep_level`.
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
    # Not compared where XLA draws: it would draw a word again for each of its four numbers.
    return tf.reshape(draws[:size], shape) < tf.constant(keep_level(rate), tf.uint8)


@functools.cache
def _random_words() -> Callable[[tf.Tensor, tf.Tensor, tf.Tensor], tf.Tensor]:
    """Maps key and counter, uint64[1] each, and a number of words, int32[1], to uint32 [words]."""
    import tensorflow as tf

    @tf.function(autograph=False, jit_compile=True)
    def random_words(key: tf.Tensor, counter: tf.Tensor, words: tf.Tensor) -> tf.Tensor:
        return tf.raw_ops.StatelessRandomUniformFullIntV2(
            shape=words, key=key, counter=counter, alg=_THREEFRY, dtype=tf.uint32
        )

    return random_words


def next_power_of_two(number: tf.Tensor) -> tf.Tensor:
    """Smallest power of two >= number, int32 [], so that XLA compiles few shapes."""
    import tensorflow as tf

    logarithm = tf.math.log(tf.cast(tf.maximum(number, 1), tf.float64)) / math.log(2.0)
    # Numbers after a power of two lie further from it than this, errors of the logarithm nearer.
    exponent = tf.cast(tf.math.ceil(logarithm - 1e-10), tf.int32)
    return tf.bitwise.left_shift(1, exponent)


def dropped(inputs: Any, keep: Any | None, rate: float) -> Any:
    """Inputs where `keep`, bool of their shape, is true, scaled by `keep_scale`; else 0.

    Inputs are float32 or wider, since bfloat16 would round the scale and move the expected output
    by a third of a per cent. A `keep` of None changes nothing.
    """
    if keep is None:
        return inputs

    def factors() -> Any:
        return ops.cast(keep, inputs.dtype) * keep_scale(rate)

    # A gradient of its own, so that not the factors are kept for it, but the mask they are made of.
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
        """Maps a float tensor to the same shape; `dropout_key` is int32[2].

        Raises UsageError if a key is given on another backend than TensorFlow.
        """
        wide = dropped(at_least_float32(inputs), self.kept(inputs, dropout_key), self.rate)
        return ops.cast(wide, inputs.dtype)

    def kept(self, inputs: Any, dropout_key: tf.Tensor | None) -> tf.Tensor | None:
        """Mask of elements of `inputs` to keep, for `dropped`; None for all. Raises as `call`."""
        if dropout_key is None or self.rate == 0:
            return None
        require_dropout()
        import tensorflow as tf

        return keep_mask(dropout_key, stream=self.stream, rate=self.rate, shape=tf.shape(inputs))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "rate": self.rate, "stream": self.stream}
