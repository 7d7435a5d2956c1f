"""Dense projection of every token, as one two-dimensional matrix product."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from bert_tf.layers.activation import activation


@keras.saving.register_keras_serializable(package="bert_tf")
class Projection(keras.layers.Layer):
    """`activation(inputs @ kernel + bias)` over the last axis.

    All leading axes are merged for the product: processors run one large matrix product faster
    than a batch of small ones.

    Args:
        size: width of the output.
        initializer_range: standard deviation of the kernel's normal distribution before it is
            truncated at two; None for `1 / sqrt(input width)` after that (LeCun et al. 1998), with
            which outputs vary as inputs do.
        activation_name: see `bert_tf.layers.activation`; None for a linear projection.
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
        initializer = (
            keras.initializers.LecunNormal()
            if self.initializer_range is None
            else keras.initializers.TruncatedNormal(stddev=self.initializer_range)
        )
        self.kernel = self.add_weight(
            name="kernel", shape=(input_shape[-1], self.size), initializer=initializer
        )
        self.bias = self.add_weight(name="bias", shape=(self.size,), initializer="zeros")

    def call(
        self,
        inputs: Any,
        other_inputs: Any | None = None,
        width: int = 0,
        is_finished: bool = True,
    ) -> Any:
        """Maps [..., input width] to [..., size] in the compute dtype.

        Args:
            inputs: float tensor.
            other_inputs: float tensor that the outputs from the `width`-th on are computed of;
                None for `inputs`.
            width: how many of the outputs are computed of `inputs` then.
            is_finished: False leaves bias and activation to the caller.

        Returns:
            The outputs; with `other_inputs` two tensors, [..., width] and [..., size - width].
            Unfinished ones are each a pair with the bias, [its width].
        """
        kernel, bias = ops.convert_to_tensor(self.kernel), ops.convert_to_tensor(self.bias)
        if other_inputs is None:
            return self._projected(inputs, kernel, bias, is_finished)
        # One split, whose gradient is one concatenation: that of two slices is a sum of matrices.
        kernels, biases = ops.split(kernel, [width], axis=1), ops.split(bias, [width], axis=0)
        return [
            self._projected(*part, is_finished)
            for part in zip((inputs, other_inputs), kernels, biases, strict=True)
        ]

    def _projected(self, inputs: Any, kernel: Any, bias: Any, is_finished: bool) -> Any:
        shape = ops.shape(inputs)
        outputs = ops.matmul(ops.reshape(inputs, (-1, shape[-1])), kernel)
        if is_finished:
            outputs = activation(self.activation_name, outputs, bias)
        outputs = ops.reshape(outputs, (*shape[:-1], kernel.shape[-1]))
        # Not the variable: the caller may read it where Keras converts it to another dtype.
        return outputs if is_finished else (outputs, ops.cast(bias, outputs.dtype))

    def compute_output_shape(self, input_shape: Any) -> Any:
        return (*input_shape[:-1], self.size)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "size": self.size,
            "initializer_range": self.initializer_range,
            "activation_name": self.activation_name,
        }
