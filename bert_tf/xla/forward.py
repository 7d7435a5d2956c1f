"""The model in the form that XLA compiles to fast programs, for GPUs and TPUs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from keras import ops

from bert_tf.layers.activation import gelu_and_slope, tanh_gelu_and_slope
from bert_tf.layers.encoder_inputs import EncoderInputs
from bert_tf.layers.implementation import Implementation, computing_by
from bert_tf.layers.masked_lm_head import MaskedLMHead
from bert_tf.layers.self_attention import gather_positions
from bert_tf.layers.transformer_block import TransformerBlock
from bert_tf.xla.attention import AttentionMask, attention_output
from bert_tf.xla.barrier import behind_barrier
from bert_tf.xla.embedding_gradient import look_up_sorted
from bert_tf.xla.residual_norm import normalized_sum

_TENSOR_CORE_MULTIPLE = 128  # products of 16 bits are fastest in such sizes
_GELUS = {
    "gelu": gelu_and_slope,
    "gelu_new": tanh_gelu_and_slope,
    "gelu_pytorch_tanh": tanh_gelu_and_slope,
}
_NEVER = -1e9  # the bias of an entry that fills the vocabulary up: its probability is 0


class XlaForward(Implementation):
    """Steps of the model in forms of which XLA makes fewer and faster kernels.

    In float32 the numbers are those of the plain layers, up to rounding; outside XLA these forms
    are slower.

    Args:
        fuses_attention: whether cuDNN computes attention, on an NVIDIA GPU, where it has a kernel:
            in 16 bits, without dropout of attention.
        sorts_embedding_gradient: whether the gradient of word embeddings is added up in one order,
            which GPUs do fast only so; for equal bits in every run.
    """

    def __init__(self, *, fuses_attention: bool = False, sorts_embedding_gradient: bool = False):
        self.fuses_attention = fuses_attention
        self.sorts_embedding_gradient = sorts_embedding_gradient

    def encode(self, encoder: Any, inputs: EncoderInputs) -> dict[str, Any]:
        """Compute `BertEncoder.encode`."""
        mask = AttentionMask.of(inputs)
        positions = inputs.computed_positions(has_pooler=encoder.has_pooler)
        look_up = look_up_sorted if self.sorts_embedding_gradient else tf.gather
        table = tf.convert_to_tensor(encoder.embeddings.word_embeddings)
        hidden = encoder.embeddings.of_words(
            look_up(table, inputs.input_word_ids),
            inputs.input_type_ids,
            inputs.position_ids,
            inputs.dropout_key,
        )
        hidden_states = [hidden]
        for block in encoder.blocks:
            read = positions if block is encoder.blocks[-1] else None
            hidden = self._block(block, hidden, mask, inputs.dropout_key, read)
            hidden_states.append(hidden)
        return encoder.outputs(inputs, hidden_states)

    def _block(
        self,
        block: TransformerBlock,
        hidden: Any,
        mask: AttentionMask,
        dropout_key: Any | None,
        positions: Any | None,
    ) -> Any:
        """Compute `TransformerBlock.call`."""
        hidden = tf.cast(hidden, block.compute_dtype)
        attended = attention_output(
            block.attention,
            hidden,
            mask,
            dropout_key=dropout_key,
            positions=positions,
            is_fused=self.fuses_attention,
        )
        if positions is not None:
            hidden = gather_positions(hidden, positions)
        hidden = normalized_sum(
            block.attention_layer_norm, hidden, attended, block.attention_dropout, dropout_key
        )
        change = block.output_projection(block.intermediate(hidden))
        return normalized_sum(
            block.output_layer_norm, hidden, change, block.output_dropout, dropout_key
        )

    def activate(self, name: str | None, products: Any, bias: Any) -> Any:
        """Compute `bert_tf.layers.activation.activation`; the slopes of GELU are not written."""
        function = _GELUS.get(str(name))
        if function is None:
            return super().activate(name, products, bias)
        return _gelu(function, products, tf.reshape(bias, [-1]))

    def masked_lm_logits(self, head: MaskedLMHead, hidden: Any, word_embeddings: Any) -> Any:
        """Compute `MaskedLMHead.call` over a vocabulary filled up to a multiple of 128 entries."""
        transformed = head.transform(hidden)
        rows = tf.reshape(head.layer_norm(transformed), [-1, head.config.hidden_size])
        missing = -head.config.vocab_size % _TENSOR_CORE_MULTIPLE
        table = tf.cast(tf.convert_to_tensor(word_embeddings), head.compute_dtype)
        table = tf.pad(table, [[0, missing], [0, 0]])
        bias = tf.cast(tf.convert_to_tensor(head.output_bias), tf.float32)
        bias = tf.pad(bias, [[0, missing]], constant_values=_NEVER)
        logits = _with_bias(tf.matmul(rows, table, transpose_b=True), bias)
        return tf.reshape(logits, [*ops.shape(transformed)[:2], bias.shape[0]])

    def cross_entropy(self, logits: Any, labels: Any) -> tuple[Any, Any]:
        """Compute `Implementation.cross_entropy`; products before and after take it in."""
        return _fused_cross_entropy(logits, labels)


def compiled(
    function: Callable[..., Any],
    form: Implementation,
    *,
    input_signature: Sequence[Any] | None = None,
) -> Any:
    """Return a `tf.function` that XLA compiles, in which models compute by a form."""

    def by_form(*arguments: Any) -> Any:
        with computing_by(form):
            return function(*arguments)

    return tf.function(by_form, input_signature, autograph=False, jit_compile=True)


def _gelu(function: Callable[..., tuple[Any, Any]], products: Any, bias: Any) -> tf.Tensor:
    """Apply GELU to products plus bias, whose slopes are computed again for the gradient.

    The products are in memory anyway. To write slopes beside the values, and to read them, costs
    more than to compute them twice, as they are the largest tensors of a block.
    """

    def wide(products: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
        return tf.cast(products, tf.float32) + tf.cast(bias, tf.float32)

    @tf.custom_gradient
    def activate(products: tf.Tensor, bias: tf.Tensor) -> Any:
        def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            again, upstream = behind_barrier(products, upstream)
            _, slopes = function(wide(again, bias))
            of_sum = tf.cast(tf.cast(upstream, tf.float32) * slopes, products.dtype)
            # The bias sums the stored 16 bits, so that nothing is stored in 32 bits for it.
            (of_sum,) = behind_barrier(of_sum)
            of_bias = tf.reduce_sum(tf.cast(of_sum, tf.float32), 0)
            return of_sum, tf.cast(of_bias, bias.dtype)

        values, _ = function(wide(products, bias))
        return tf.cast(values, products.dtype), gradient

    return activate(products, bias)


@tf.custom_gradient
def _with_bias(products: tf.Tensor, bias: tf.Tensor) -> Any:
    """Add float32 [entries] to [rows, entries].

    The gradient is rounded to the dtype of the products first, so that XLA writes no float32 tensor
    of that size for the two sums that take it.
    """

    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        rounded = tf.cast(upstream, products.dtype)
        return rounded, tf.reduce_sum(tf.cast(rounded, tf.float32), axis=0)

    return tf.cast(products, tf.float32) + bias, gradient


def _fused_cross_entropy(logits: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Compute `cross_entropy` by operations that XLA fuses into the products before and after.

    The gradient computes probabilities again, which costs less than writing and reading them.
    """
    rows = tf.reshape(logits, [-1, logits.shape[-1]])
    is_label = tf.reshape(labels, [-1, 1]) == tf.range(rows.shape[-1], dtype=labels.dtype)

    @tf.custom_gradient
    def losses_of(rows: tf.Tensor) -> tuple[Any, Callable[..., tf.Tensor]]:
        highest = tf.reduce_max(rows, axis=-1)
        log_sums = highest + tf.math.log(tf.reduce_sum(tf.exp(rows - highest[:, None]), axis=-1))
        label_logits = tf.reduce_sum(tf.where(is_label, rows, 0.0), axis=-1)

        def gradient(upstream: tf.Tensor, _: tf.Tensor) -> tf.Tensor:
            probabilities = tf.exp(rows - log_sums[:, None])
            return (probabilities - tf.cast(is_label, tf.float32)) * upstream[:, None]

        right = tf.cast(label_logits >= highest, tf.float32)
        return (log_sums - label_logits, right), gradient

    losses, right = losses_of(rows)
    return tf.reshape(losses, tf.shape(labels)), tf.reshape(right, tf.shape(labels))
