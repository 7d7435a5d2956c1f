"""Gradients of one step, large ones in parts that nobody has added up yet, and those of tables as
the rows that were looked up."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import tensorflow as tf

from bert_tf.cpu.kernels.adamw import squared_norm_entry
from bert_tf.cpu.kernels.operation import kind_of, results_of

# Numbers that are worth a kernel's call.
_LARGE = 2**17
# Of one variable. Two tensors, in bfloat16 or float32, are the parts of a float32 sum; slices are
# the only rows that are not 0, float32, each of them once.
Gradient: TypeAlias = "tf.Tensor | tuple[tf.Tensor, tf.Tensor] | tf.IndexedSlices"


def is_large(values: Any) -> bool:
    """Whether a variable, or its gradient, is one that kernels work on."""
    return (values.shape.num_elements() or 0) >= _LARGE


def joined(parts: Sequence[tf.Tensor | tf.IndexedSlices]) -> Gradient:
    """The gradient that is the sum of parts; two large ones are left as they are."""
    if isinstance(parts[0], tf.IndexedSlices):
        return _rows_once(parts)
    if len(parts) == 2 and is_large(parts[0]) and parts[0].dtype in (tf.bfloat16, tf.float32):
        return tuple(parts)
    return tf.add_n([tf.cast(part, tf.float32) for part in parts])


def summed(gradient: Gradient) -> tf.Tensor:
    """As one tensor; parts in bfloat16 are converted and added in one pass over memory."""
    if isinstance(gradient, tf.IndexedSlices):
        return tf.convert_to_tensor(gradient)
    if not isinstance(gradient, tuple):
        return gradient
    if gradient[0].dtype == tf.float32:
        return tf.add(*gradient)
    return _compiled_sum()(*gradient)


def global_norm(gradients: Sequence[Gradient]) -> tf.Tensor:
    """The square root of the sum of all squares, float32 []; parts are added up for it alone."""
    return tf.sqrt(tf.add_n([_squared_norm(gradient) for gradient in gradients]))


def _squared_norm(gradient: Gradient) -> tf.Tensor:
    if isinstance(gradient, tuple):
        result = tf.constant([1]), tf.float32
        entry = squared_norm_entry(kind_of(gradient[0]))
        return results_of(entry, gradient, [result], row_axes=0, sums=1)[0][0]
    values = gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
    return 2.0 * tf.nn.l2_loss(values)


def _rows_once(parts: Sequence[tf.IndexedSlices]) -> tf.IndexedSlices:
    values = tf.concat([tf.cast(part.values, tf.float32) for part in parts], axis=0)
    indices, places = tf.unique(tf.concat([part.indices for part in parts], axis=0))
    rows = tf.math.unsorted_segment_sum(values, places, tf.size(indices))
    return tf.IndexedSlices(rows, indices, dense_shape=parts[0].dense_shape)


@functools.cache
def _compiled_sum() -> Callable[..., tf.Tensor]:
    @tf.function(autograph=False, jit_compile=True)
    def converted_sum(first: tf.Tensor, second: tf.Tensor) -> tf.Tensor:
        return tf.cast(first, tf.float32) + tf.cast(second, tf.float32)

    return converted_sum
