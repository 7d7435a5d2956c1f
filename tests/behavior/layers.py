"""Behavior of every layer and every model."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from bert_tf.config.bert import BertConfig

POLICIES = ("float32", "mixed_bfloat16", "mixed_float16")


def check_layer(
    cls: type[keras.layers.Layer],
    arguments: dict[str, Any],
    inputs: tuple[np.ndarray, ...],
    *,
    shape: tuple[int, ...],
    build_shape: tuple[int | None, ...] | None = None,
    output_dtype: str | None = None,
) -> None:
    """Check the behavior that all layers share.

    The config has every argument and makes an equal layer; the output has its shape and is finite
    in the compute dtype of every policy, over float32 weights; a graph that knows no leading axis
    agrees with eager execution; every weight gets a gradient; `compute_output_shape`, where there
    is one, is right.

    Args:
        cls: the layer's class.
        arguments: of its constructor.
        inputs: of its call; floats are cast to the compute dtype.
        shape: of the output.
        build_shape: what `build` takes; that of the first input if it is None.
        output_dtype: where it is not the compute dtype.
    """
    build_shape = inputs[0].shape if build_shape is None else build_shape
    for policy in POLICIES:
        layer = _built(cls(**arguments, dtype=policy), build_shape)
        values = _cast(inputs, layer)
        outputs = layer(*values)
        assert tuple(outputs.shape) == shape
        assert outputs.dtype == (output_dtype or policy.removeprefix("mixed_")), policy
        assert np.isfinite(tf.cast(outputs, tf.float32)).all(), policy
        assert {weight.dtype for weight in layer.weights} <= {"float32"}, policy
        config = layer.get_config()
        for name, value in arguments.items():
            assert config[name] == (value.fields() if isinstance(value, BertConfig) else value)
        copy = _check_config(layer, build_shape)
        _assert_equal(copy(*values), outputs)
    layer = _built(cls(**arguments, dtype="float32"), build_shape)
    _check_graph(layer, inputs)
    _check_gradients(layer, inputs)
    if type(layer).compute_output_shape is not keras.layers.Layer.compute_output_shape:
        assert tuple(layer.compute_output_shape(inputs[0].shape)) == shape


def check_masked_positions(
    layer: keras.layers.Layer, hidden: np.ndarray, *, bias_of: Any, visible: int
) -> None:
    """Check that masked positions have no influence, and that masking all makes no NaN.

    Args:
        layer: built; takes hidden states and `attention_bias`.
        hidden: [batch, length, hidden].
        bias_of: from a mask [batch, length] to `attention_bias`.
        visible: positions of each row that are not hidden.
    """
    mask = np.zeros(hidden.shape[:2], np.int32)
    inputs = tf.cast(hidden, layer.compute_dtype)
    padded = layer(inputs, attention_bias=bias_of(mask))
    assert np.isfinite(tf.cast(padded, tf.float32)).all()
    mask[:, :visible] = 1
    changed = hidden.copy()
    changed[:, visible:] += 100
    expected = layer(inputs, attention_bias=bias_of(mask))
    outputs = layer(tf.cast(changed, layer.compute_dtype), attention_bias=bias_of(mask))
    _assert_equal(outputs[:, :visible], expected[:, :visible])


def _built(layer: keras.layers.Layer, shape: Any) -> keras.layers.Layer:
    if not layer.built:
        layer.build(shape)
    return layer


def _cast(inputs: tuple[np.ndarray, ...], layer: keras.layers.Layer) -> list[Any]:
    return [
        tf.cast(value, layer.compute_dtype) if value.dtype.kind == "f" else tf.constant(value)
        for value in inputs
    ]


def _check_config(layer: keras.layers.Layer, build_shape: Any) -> keras.layers.Layer:
    """Return an equal layer with the same weights, made from the serialized config."""
    serialized = keras.layers.serialize(layer)
    copy = keras.layers.deserialize(serialized)
    assert type(copy) is type(layer)
    assert keras.layers.serialize(copy)["config"] == serialized["config"]
    _built(copy, build_shape)
    names = [[weight.path.partition("/")[2] for weight in each.weights] for each in (layer, copy)]
    assert names[0] == names[1]
    copy.set_weights(layer.get_weights())
    return copy


def _check_graph(layer: keras.layers.Layer, inputs: tuple[np.ndarray, ...]) -> None:
    values = _cast(inputs, layer)
    # The last axis of hidden states and tables is a layer's own; the axes before are the batch's.
    unknown = [
        tf.TensorSpec(
            [None] * (value.ndim - 1) + [value.shape[-1] if value.dtype.kind == "f" else None],
            tensor.dtype,
        )
        for value, tensor in zip(inputs, values, strict=True)
    ]
    graph = tf.function(lambda *given: layer(*given), input_signature=unknown)
    np.testing.assert_allclose(graph(*values), layer(*values), atol=1e-5)


def _check_gradients(layer: keras.layers.Layer, inputs: tuple[np.ndarray, ...]) -> None:
    values = _cast(inputs, layer)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(*values) ** 2)
    weights = layer.trainable_weights
    gradients = tape.gradient(loss, [weight.value for weight in weights]) if weights else []
    for weight, gradient in zip(weights, gradients, strict=True):
        assert gradient is not None, weight.path
        assert np.isfinite(tf.convert_to_tensor(gradient)).all(), weight.path


def _assert_equal(ours: Any, expected: Any) -> None:
    np.testing.assert_array_equal(tf.cast(ours, tf.float32), tf.cast(expected, tf.float32))
