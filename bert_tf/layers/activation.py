"""Activation functions by the names of a BERT config."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from bert_tf.layers.fusible import are_fusible, exact_gelu

_TANH_SCALE = math.sqrt(2.0 / math.pi)
_TANH_CUBE = 0.044715

Unary = Callable[[Any], Any]


def activation(name: str | None, inputs: Any) -> Any:
    """Applies an activation.

    Args:
        name: "gelu" is the exact one (HuggingFace); "gelu_new" and "gelu_pytorch_tanh" are the
            tanh approximation (google-research/bert, KerasHub; Hendrycks and Gimpel 2016);
            "relu", "tanh"; None changes nothing.
        inputs: float tensor of any shape.

    Raises:
        ValueError: the name is not known.
    """
    match name:
        case None:
            return inputs
        case "gelu":
            return exact_gelu(inputs) if are_fusible() else _EXACT_GELU(inputs)
        case "gelu_new" | "gelu_pytorch_tanh":
            return _TANH_GELU(inputs)
        case "relu":
            return ops.relu(inputs)
        case "tanh":
            return ops.tanh(inputs)
    raise ValueError(f"activation {name!r} is not known")


def _with_slope(function: Unary, slope: Unary) -> Unary:
    """An activation computed in float32 at least, whose gradient keeps nothing but the input.

    Outside XLA every elementary operation passes through memory once, and those on bfloat16 convert
    each number twice; TensorFlow's `erfc`, which its own GELU is made of, is not vectorized.
    """

    @ops.custom_gradient
    def activate(inputs: Any) -> Any:
        def gradient(*args: Any, upstream: Any = None) -> Any:
            (upstream,) = args if upstream is None else (upstream,)
            return upstream * ops.cast(slope(_in_float32(inputs)), inputs.dtype)

        return ops.cast(function(_in_float32(inputs)), inputs.dtype), gradient

    return activate


def _in_float32(inputs: Any) -> Any:
    return ops.cast(inputs, keras.backend.result_type(inputs.dtype, "float32"))


def _normal_cdf(values: Any) -> Any:
    return 0.5 + 0.5 * ops.erf(values * math.sqrt(0.5))


def _gelu(values: Any) -> Any:
    return values * _normal_cdf(values)


def _gelu_slope(values: Any) -> Any:
    density = ops.exp(-0.5 * ops.square(values)) / math.sqrt(2.0 * math.pi)
    return _normal_cdf(values) + values * density


def _tanh_term(values: Any) -> Any:
    return ops.tanh(_TANH_SCALE * (values + _TANH_CUBE * ops.square(values) * values))


def _tanh_gelu(values: Any) -> Any:
    return 0.5 * values * (1.0 + _tanh_term(values))


def _tanh_gelu_slope(values: Any) -> Any:
    term = _tanh_term(values)
    inner = _TANH_SCALE * (1.0 + 3.0 * _TANH_CUBE * ops.square(values))
    return 0.5 * (1.0 + term + values * (1.0 - ops.square(term)) * inner)


_EXACT_GELU = _with_slope(_gelu, _gelu_slope)
_TANH_GELU = _with_slope(_tanh_gelu, _tanh_gelu_slope)
