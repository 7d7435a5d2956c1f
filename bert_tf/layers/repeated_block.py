"""Blocks that differ in their weights and dropout streams alone, traced into a graph once."""

from __future__ import annotations

from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

import keras

from bert_tf.cpu.switch import are_fused, context_value
from bert_tf.layers.dropout import stream_offset
from bert_tf.layers.transformer_block import TransformerBlock

_IS_WANTED = ContextVar("is_wanted", default=False)


def blocks_traced_once() -> AbstractContextManager[None]:
    """Encoders called in this context, inside a TensorFlow function, trace one block for all.

    Tracing the blocks is most of what a training step on processors takes before it first runs.
    Outputs and gradients are bit by bit those of blocks traced one by one, unless TensorFlow
    rewrites the graphs.
    """
    return context_value(_IS_WANTED, keras.config.backend() == "tensorflow")


class RepeatedBlock:
    """Calls blocks by the graph of the first one, which gets their weights as arguments.

    Args:
        block: built before the first call; the others have the same config, dtype policy and
            shapes.
    """

    def __init__(self, block: TransformerBlock):
        self._block = block
        self._graphs: dict[bool, Any] = {}

    def __call__(
        self,
        block: TransformerBlock,
        hidden: Any,
        attention_bias: Any | None = None,
        dropout_key: Any | None = None,
        positions: Any | None = None,
        token_numbers: Any | None = None,
    ) -> Any:
        """What `block` maps its inputs to; see `TransformerBlock.call`."""
        arguments = {
            "attention_bias": attention_bias,
            "dropout_key": dropout_key,
            "token_numbers": token_numbers,
        }
        # A call's gradients are computed whole, so frozen blocks are called directly. So is one
        # that computes some positions alone, unlike the others.
        if not _IS_WANTED.get() or not block.trainable or positions is not None:
            return block(hidden, positions=positions, **arguments)
        import tensorflow as tf

        is_fused = are_fused()
        if is_fused not in self._graphs:
            self._graphs[is_fused] = tf.function(self._call, autograph=False)
        weights = [tf.convert_to_tensor(variable.value) for variable in block.variables]
        streams = block.first_dropout_stream - self._block.first_dropout_stream
        return self._graphs[is_fused](weights, tf.constant(streams, tf.int64), hidden, **arguments)

    def _call(
        self,
        weights: list[Any],
        streams: Any,
        hidden: Any,
        attention_bias: Any | None,
        dropout_key: Any | None,
        token_numbers: Any | None,
    ) -> Any:
        if attention_bias is not None:  # or a call would sum up its gradient, which nobody needs
            attention_bias = keras.ops.stop_gradient(attention_bias)
        with keras.StatelessScope() as scope, stream_offset(streams):
            for variable, value in zip(self._block.variables, weights, strict=True):
                # Not by `state_mapping`, which converts to the variable's own dtype.
                scope.add_update((variable, value))
            outputs = self._block(
                hidden,
                attention_bias=attention_bias,
                dropout_key=dropout_key,
                token_numbers=token_numbers,
            )
        # What is known of the shape is known after every block: one graph fits them all.
        outputs.set_shape(hidden.shape)
        return outputs
