"""A training step on CPUs: gradients of parts of a batch side by side, and the weights' update.

Operations of a small BERT take less time than it costs to divide each of them among cores. So the
rows of a batch are divided instead: the parts depend on each other only when their gradients are
added up.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

import keras
import tensorflow as tf

from bert_tf.cpu.adamw import Gradient, InPlaceAdamW, is_large, squared_norm_entry
from bert_tf.cpu.forward import Forward
from bert_tf.cpu.kernels.operation import kind_of, results_of
from bert_tf.layers.implementation import PLAIN, computing_by

_GRAPPLER_OFF = "disable_meta_optimizer"  # an option of TensorFlow
_Batch: TypeAlias = dict[str, tf.Tensor]
_Numbers: TypeAlias = dict[str, tf.Tensor]
# Takes a batch, the weights of its loss terms, the scale of the loss, and a dropout key. Returns
# gradients as TensorFlow gives them, and numbers to be summed over batches.
ComputeGradients: TypeAlias = Callable[
    [_Batch, _Numbers, tf.Tensor, tf.Tensor], tuple[list[Any], _Numbers]
]


class CpuBackend:
    """Computes gradients of parts of a batch side by side, and updates large variables in one pass.

    Methods are those of `bert_tf.training.step.PlainBackend`; gradients may have any form of
    `Gradient`.

    Args:
        compute: computes gradients and numbers of a batch.
        model: a built Keras model.
        optimizer: applies the gradients; `AdamW` does it in place.
        use_kernels: whether encoders run `bert_tf.cpu.forward`.
        shards: parts of a batch; 1 does not divide it.
        replicas: replicas of the strategy; several exclude updates in place.
    """

    def __init__(
        self,
        compute: ComputeGradients,
        *,
        model: Any,
        optimizer: Any,
        use_kernels: bool,
        shards: int,
        replicas: int,
    ):
        self._compute = compute
        self._optimizer = optimizer
        self._shards = shards
        self._forward = Forward(traces_once=shards > 1) if use_kernels else None
        # Copies are for parts of a batch, which all read the same weights.
        divided = model.trainable_variables if shards > 1 else []
        self._copies = ComputeCopies(divided, model.compute_dtype)
        self._in_place: InPlaceAdamW | None = None
        if replicas == 1 and hasattr(optimizer, "update_in_place"):
            self._in_place = optimizer.update_in_place(self._copies.variables)
        # Calls that are not inlined are traced once for all parts, and run side by side.
        self._shard_gradients = tf.function(
            self._gradients_of, autograph=False, experimental_attributes={"_noinline": True}
        )

    def running(self) -> AbstractContextManager[None]:
        return without_graph_rewrites()

    @tf.function(autograph=False)
    def take_variables(self) -> None:
        if self._in_place is not None:
            self._in_place.take_memory()
        self._copies.refresh()

    def gradients(
        self, batch: _Batch, weights: _Numbers, scale: tf.Tensor, key: tf.Tensor
    ) -> tuple[list[Gradient], _Numbers]:
        if self._shards == 1:
            parts = [self._gradients_of(batch, weights, scale, key)]
        else:
            copies = self._copies.read()
            # Rows are often sorted by length, so each part gets every other row: then both have
            # about as many tokens.
            parts = [
                self._shard_gradients(
                    {name: tensor[index :: self._shards] for name, tensor in batch.items()},
                    weights,
                    scale,
                    tf.random.fold_in(key, index, alg="philox"),
                    copies,
                )
                for index in range(self._shards)
            ]
        gradients, sums = zip(*parts, strict=True)
        return (
            [joined(of_parts) for of_parts in zip(*gradients, strict=True)],
            tf.nest.map_structure(lambda *values: tf.add_n(values), *sums),
        )

    def total(self, gradient: Gradient) -> tf.Tensor:
        return summed(gradient)

    def norm(self, gradients: Sequence[Gradient]) -> tf.Tensor:
        return global_norm(gradients)

    def apply(self, gradients: Sequence[Gradient]) -> None:
        self._optimizer.apply(
            [
                gradient if self._is_in_place(index) else summed(gradient)
                for index, gradient in enumerate(gradients)
            ]
        )
        self._copies.refresh(but=self._is_in_place)

    def _is_in_place(self, index: int) -> bool:
        return self._in_place is not None and index in self._in_place

    def _gradients_of(
        self,
        batch: _Batch,
        weights: _Numbers,
        scale: tf.Tensor,
        key: tf.Tensor,
        copies: Sequence[tf.Tensor] = (),
    ) -> tuple[list[tf.Tensor | tf.IndexedSlices], _Numbers]:
        """Return gradients and numbers of one part of a batch.

        Gradients of tables stay sparse if kernels computed them and the optimizer takes rows.
        """
        with computing_by(self._forward or PLAIN), self._copies.in_use(copies):
            gradients, numbers = self._compute(batch, weights, scale, key)
        tables = self._in_place if self._forward is not None else None

        def stays_sparse(index: int, gradient: Any) -> bool:
            is_sparse = isinstance(gradient, tf.IndexedSlices)
            return is_sparse and tables is not None and tables.takes_rows(index)

        kept = [
            gradient if stays_sparse(index, gradient) else tf.convert_to_tensor(gradient)
            for index, gradient in enumerate(gradients)
        ]
        return kept, numbers


class ComputeCopies:
    """bfloat16 copies of large weights, which all parts of a batch read.

    Without them, Keras would convert a variable wherever it is read. Gradients of a copy have its
    dtype, so parts of a batch return them in bfloat16.

    Args:
        variables: trainable variables of the model.
        dtype: compute dtype of the model; if it is that of the variables, there are no copies.

    Attributes:
        variables: copies by the index of the variable. Not saved: `refresh` makes them from the
            weights, and the optimizer updates both.
    """

    def __init__(self, variables: Sequence[Any], dtype: str):
        self._dtype = dtype
        self._originals = {
            number: variable
            for number, variable in enumerate(variables)
            if variable._autocast
            and variable.dtype != dtype
            and len(variable.shape) > 1
            and is_large(variable.value)
        }
        self.variables = {
            number: tf.Variable(tf.cast(original.value, dtype), trainable=False)
            for number, original in self._originals.items()
        }

    def refresh(self, *, but: Callable[[int], bool] = lambda number: False) -> None:
        """Convert the current weights, except those whose index `but` returns True for."""
        for number, original in self._originals.items():
            if not but(number):
                self.variables[number].assign(tf.cast(original.value, self._dtype))

    def read(self) -> list[tf.Tensor]:
        """Return the values of the copies."""
        return [copy.read_value() for copy in self.variables.values()]

    @contextlib.contextmanager
    def in_use(self, copies: Sequence[tf.Tensor]) -> Iterator[None]:
        """Replace reads of variables in this context by values of their copies, from `read`."""
        if not copies:
            yield
            return
        with keras.StatelessScope() as scope:
            for original, copy in zip(self._originals.values(), copies, strict=True):
                scope.add_update((original, copy))
            yield


def joined(parts: Sequence[tf.Tensor | tf.IndexedSlices]) -> Gradient:
    """Return the gradient that is the sum of parts; two large parts stay apart."""
    if isinstance(parts[0], tf.IndexedSlices):
        return _rows_once(parts)
    if len(parts) == 2 and is_large(parts[0]) and parts[0].dtype in (tf.bfloat16, tf.float32):
        return tuple(parts)
    return tf.add_n([tf.cast(part, tf.float32) for part in parts])


def summed(gradient: Gradient) -> tf.Tensor:
    """Return a gradient as one tensor; parts in bfloat16 are converted and added in one pass."""
    if isinstance(gradient, tf.IndexedSlices):
        return tf.convert_to_tensor(gradient)
    if not isinstance(gradient, tuple):
        return gradient
    if gradient[0].dtype == tf.float32:
        return tf.add(*gradient)
    return _compiled_sum()(*gradient)


def global_norm(gradients: Sequence[Gradient]) -> tf.Tensor:
    """Return the global norm, float32 []; parts are only added up block by block."""
    return tf.sqrt(tf.add_n([_squared_norm(gradient) for gradient in gradients]))


@contextlib.contextmanager
def without_graph_rewrites() -> Iterator[None]:
    """Run functions as they were traced, on CPUs, inside the block.

    TensorFlow's Grappler searches the thousands of operations of a training step for a second or
    two without a benefit: steps on long rows take as long without it, those on short rows are a
    fifth faster.
    """
    options = tf.config.optimizer
    before = bool(options.get_experimental_options().get(_GRAPPLER_OFF, False))
    if before or tf.config.list_physical_devices("GPU"):
        yield
        return
    options.set_experimental_options({_GRAPPLER_OFF: True})
    try:
        yield
    finally:
        options.set_experimental_options({_GRAPPLER_OFF: before})


def _squared_norm(gradient: Gradient) -> tf.Tensor:
    if isinstance(gradient, tuple):
        result = (tf.constant([1]), tf.float32)
        entry = squared_norm_entry(kind_of(gradient[0]))
        (squares,) = results_of(entry, gradient, [result], row_axes=0, sums=1)
        return squares[0]
    values = gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
    return 2.0 * tf.nn.l2_loss(values)


def _rows_once(parts: Sequence[tf.IndexedSlices]) -> tf.IndexedSlices:
    """Return slices with the sum of all rows of an index, so that each index occurs once."""
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
