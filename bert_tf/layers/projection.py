"""Dense projection of every token."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from bert_tf.layers.implementation import implementation


@keras.saving.register_keras_serializable(package="bert_tf")
class Projection(keras.layers.Layer):
    """`activation(inputs @ kernel + bias)` over the last axis, as one two-dimensional product.

    CPUs run that faster than a batch of small products.

    Args:
        size: width of the outputs.
        initializer_range: standard deviation of the kernel's normal distribution, before it is
            truncated at two; None for `1 / sqrt(input width)` after truncation (LeCun et al. 1998),
            with which outputs vary as much as inputs.
        activation_name: see `activation`; None for a linear projection.
    """

    def __init__(
        self,
        size: int,
        *,
        initializer_range: float | None,
        activation_name: str | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.size = size
        self.initializer_range = initializer_range
        self.activation_name = activation_name

    def build(self, input_shape: Any) -> None:
        initializer: keras.Initializer
        # Only one of them is made, since each draws a seed.
        if self.initializer_range is None:
            initializer = keras.initializers.LecunNormal()
        else:
            initializer = keras.initializers.TruncatedNormal(stddev=self.initializer_range)
        self.kernel = self.add_weight(
            name="kernel", shape=(input_shape[-1], self.size), initializer=initializer
        )
        self.bias = self.add_weight(name="bias", shape=(self.size,), initializer="zeros")

    def call(self, inputs: Any) -> Any:
        """Project [..., input width] to [..., size] in the compute dtype."""
        return self._projected(inputs, *self.tensors())

    def in_two(self, inputs: Any, other_inputs: Any, width: int) -> tuple[Any, Any]:
        """Project `inputs` to the first `width` outputs, and `other_inputs` to the rest.

        Both are [..., input width] in the compute dtype; results are [..., width] and [..., size -
        width].
        """
        kernel, bias = self.tensors()
        # The gradient of a split is a concatenation; that of two slices would be a sum of matrices.
        first_kernel, other_kernel = ops.split(kernel, [width], axis=1)
        first_bias, other_bias = ops.split(bias, [width], axis=0)
        first = self._projected(inputs, first_kernel, first_bias)
        return first, self._projected(other_inputs, other_kernel, other_bias)

    def tensors(self) -> tuple[Any, Any]:
        """Return kernel and bias in the compute dtype, also outside of `call`."""
        kernel = ops.convert_to_tensor(self.kernel)
        bias = ops.convert_to_tensor(self.bias)
        return ops.cast(kernel, self.compute_dtype), ops.cast(bias, self.compute_dtype)

    def _projected(self, inputs: Any, kernel: Any, bias: Any) -> Any:
        shape = ops.shape(inputs)
        outputs = ops.matmul(ops.reshape(inputs, (-1, shape[-1])), kernel)
        outputs = implementation().activate(self.activation_name, outputs, bias)
        return ops.reshape(outputs, (*shape[:-1], kernel.shape[-1]))

    def compute_output_shape(self, input_shape: Any) -> Any:
        return (*input_shape[:-1], self.size)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "size": self.size,
            "initializer_range": self.initializer_range,
            "activation_name": self.activation_name,
        }
