"""The encoder's forward pass on processors: `BertEncoder.call` with kernels between the products.

Outputs and gradients are those of the plain layers, whose variables it reads. Kernels fuse
element-wise operations, padding is left out (`unpadded`), blocks are traced once, and where only
first tokens are read, the last block makes no keys and values (`first_token_context`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from bert_tf.cpu.kernels.graph import (
    biased_gelu,
    biased_heads,
    dropped_softmax,
    joined_heads,
    kept_elements,
    normalized_sum,
    padded_rows,
)
from bert_tf.layers.activation import activation, at_least_float32
from bert_tf.layers.dropout import (
    StatelessDropout,
    dropped,
    generator_state,
    keep_level,
    keep_scale,
)
from bert_tf.layers.embeddings import BertEmbeddings
from bert_tf.layers.encoder_inputs import EncoderInputs
from bert_tf.layers.implementation import Implementation
from bert_tf.layers.layer_norm import LayerNorm
from bert_tf.layers.masked_lm_head import MaskedLMHead
from bert_tf.layers.projection import Projection
from bert_tf.layers.self_attention import SelfAttention, bias_of_queries, gather_positions
from bert_tf.layers.transformer_block import TransformerBlock

_GELUS = ("gelu", "gelu_new", "gelu_pytorch_tanh")
# oneDNN prepares products anew for every number of tokens, which takes as long as some of them. So
# there are 32 numbers between a power of two and the next, and multiples of this below 512.
_LEAST_MULTIPLE = 8
_POWERS = tuple(2**power for power in range(9, 31))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Unpadded:
    """Places of tokens in one row without padding, which costs as much as text, and back.

    Only attention needs rows (Zeng et al. 2022, "Boosting Distributed Training Performance of the
    Unpadded BERT Model").

    Attributes:
        numbers: int32 [batch, length], of each token in the long row; -1 for padding left out.
        places: int32 [tokens], of each token in the padded rows one after the other.
    """

    numbers: tf.Tensor
    places: tf.Tensor

    @property
    def firsts(self) -> tf.Tensor:
        """Numbers of the rows' first tokens, int32 [1, batch]."""
        return self.numbers[:, 0][None]

    @property
    def position_ids(self) -> tf.Tensor:
        """Place of each token in its padded row, int32 [1, tokens]."""
        return (self.places % tf.shape(self.numbers)[1])[None]

    def take(self, values: Any) -> tf.Tensor:
        """[batch, length] to [1, tokens]."""
        return tf.gather(tf.reshape(values, [-1]), self.places)[None]

    def padded(self, hidden: tf.Tensor) -> tf.Tensor:
        """[1, tokens, hidden] to [batch, length, hidden], 0 on padding that was left out."""
        return padded_rows(hidden, self.numbers)


def unpadded(mask: Any) -> Unpadded:
    """Numbers the tokens of padded rows, in their order; `mask` is [batch, length], true on tokens.

    Among them are the first place of every row, even of one of padding only, and padding up to a
    round number: a multiple of 8, from 1,024 on of 32, and so on, where rows have so many places.
    """
    is_token = tf.cast(mask, tf.bool)
    is_token = tf.concat([tf.ones_like(is_token[:, :1]), is_token[:, 1:]], axis=1)
    flat = tf.reshape(is_token, [-1])
    tokens = tf.math.count_nonzero(flat, dtype=tf.int32)
    doublings = tf.math.count_nonzero(tokens >= tf.constant(_POWERS), dtype=tf.int32)
    missing = -tokens % tf.bitwise.left_shift(_LEAST_MULTIPLE, doublings)
    is_taken = flat | (tf.cumsum(tf.cast(~flat, tf.int32)) <= missing)
    numbers = tf.where(is_taken, tf.cumsum(tf.cast(is_taken, tf.int32)) - 1, -1)
    return Unpadded(
        numbers=tf.reshape(numbers, tf.shape(mask)),
        places=tf.cast(tf.where(is_taken)[:, 0], tf.int32),
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shared:
    """Inputs of all blocks of a pass.

    Attributes:
        key: of dropout, int32[2].
        numbers: int32 [batch, length] where hidden states are without padding, see `Unpadded`.
        offset: int64 [], added to the layers' streams of dropout.
    """

    bias: Any | None = None
    key: Any | None = None
    numbers: Any | None = None
    offset: Any = 0


Block = Callable[[TransformerBlock, Any, Shared, "Any | None"], Any]


def block_output(
    block: TransformerBlock, hidden: Any, shared: Shared, positions: Any | None = None
) -> Any:
    """Computes `TransformerBlock.call` on [batch, length, hidden], or unpadded [1, tokens, hidden].

    Unpadded `positions` are the numbers of the rows' first tokens, int32 [1, batch].
    """
    attended = attention_output(block.attention, hidden, shared, positions)
    if positions is not None:
        hidden = gather_positions(hidden, positions)
    hidden = norm_of_sum(
        block.attention_layer_norm, hidden, attended, block.attention_dropout, shared
    )
    transformed = _product(block.output_projection, project(block.intermediate, hidden))
    return norm_of_sum(block.output_layer_norm, hidden, transformed, block.output_dropout, shared)


def attention_output(
    attention: SelfAttention, hidden: Any, shared: Shared, positions: Any | None = None
) -> tuple[Any, Any]:
    """`SelfAttention.call` without the last bias, the second result; see `block_output`."""
    if shared.numbers is not None and positions is not None:
        return _product(
            attention.output_projection, _context_of_first(attention, hidden, shared, positions)
        )
    layer, num_heads, bias = attention.query_key_value, attention.num_heads, shared.bias
    if positions is None:
        query, key, value = biased_heads(
            *_product(layer, hidden), shared.numbers, parts=3, num_heads=num_heads
        )
    else:
        width = hidden.shape[-1]
        # One split, whose gradient is one concatenation.
        kernels, biases = (tf.split(each, [width, 2 * width], axis=-1) for each in layer.tensors())
        queries = _matrix_product(gather_positions(hidden, positions), kernels[0])
        (query,) = biased_heads(queries, biases[0], parts=1, num_heads=num_heads)
        others = _matrix_product(hidden, kernels[1])
        key, value = biased_heads(others, biases[1], parts=2, num_heads=num_heads)
        bias = bias_of_queries(bias, positions)
    products = tf.matmul(query, key, transpose_b=True)
    probabilities = _dropped_softmax(attention, products, bias, shared, query.shape[-1])
    tokens = None if shared.numbers is None else tf.shape(hidden)[1]
    context = joined_heads(tf.matmul(probabilities, value), shared.numbers, tokens=tokens)
    return _product(attention.output_projection, context)


def project(layer: Projection, inputs: Any) -> Any:
    products, bias = _product(layer, inputs)
    flat = tf.reshape(products, [-1, products.shape[-1]])
    if layer.activation_name in _GELUS:
        outputs = biased_gelu(flat, bias, is_exact=layer.activation_name == "gelu")
    else:
        outputs = activation(layer.activation_name, flat, bias)
    return tf.reshape(outputs, tf.shape(products))


def norm_of_sum(
    layer: LayerNorm,
    hidden: Any,
    change: tuple[Any, Any],
    dropout: StatelessDropout,
    shared: Shared,
) -> Any:
    """`LayerNorm.of_sum` of a change and the bias still to be added to it."""
    outputs, bias = change
    gamma, beta = (tf.reshape(weights, [-1]) for weights in (layer.gamma, layer.beta))
    keep = _kept(dropout, outputs, shared)
    return normalized_sum(
        *(hidden, outputs, bias, keep, gamma, beta),
        keep_scale=keep_scale(dropout.rate),
        epsilon=layer.epsilon,
    )


def first_token_context(
    firsts: tf.Tensor,
    rows: tf.Tensor,
    kernel: tf.Tensor,
    bias: tf.Tensor,
    probabilities: Callable[[tf.Tensor], tf.Tensor],
    *,
    num_heads: int,
) -> tf.Tensor:
    """Attends from each row's first token, without the keys and values of all tokens.

    A query q has with a token's key, W x + b, the product (transpose(W) q) x + q b. The second term
    is one number for all keys of a row, which softmax does not see. Values are projected after
    their mean, too: that of W x + b, weighted by p, is W times the mean of x, plus b times the sum
    of p. With one query per row, a token costs 2 x heads x width multiplications, instead of
    2 x width^2 for its key and value and 2 x width for attention.

    `firsts` are float [batch, hidden], `rows` [batch, length, hidden], `kernel` and `bias`
    [hidden, 3 * hidden] and [3 * hidden]; the bias of keys is not used. `probabilities` maps
    products, [batch, heads, 1, length], to the weights of values. Returns [batch, hidden], to be
    projected.
    """
    width = rows.shape[-1]
    size = width // num_heads
    query_kernel, key_kernel, value_kernel = tf.split(kernel, 3, axis=1)
    queries = tf.reshape(firsts @ query_kernel + bias[:width], [-1, num_heads, size])
    key_kernel = tf.transpose(tf.reshape(key_kernel, [width, num_heads, size]), [1, 2, 0])
    queries = _for_each_head(queries, key_kernel)
    products = tf.matmul(queries, rows, transpose_b=True)[:, :, None]
    weights = probabilities(products)[:, :, 0]
    value_kernel = tf.transpose(tf.reshape(value_kernel, [width, num_heads, size]), [1, 0, 2])
    context = _for_each_head(weights @ rows, value_kernel)
    total = tf.cast(tf.reduce_sum(tf.cast(weights, tf.float32), axis=-1), context.dtype)
    context += total[:, :, None] * tf.reshape(bias[2 * width :], [num_heads, size])
    return tf.reshape(context, [-1, width])


def encode(encoder: Any, inputs: EncoderInputs, call_block: Block = block_output) -> dict[str, Any]:
    """Computes `BertEncoder.call`, inside a TensorFlow function; blocks by `call_block`."""
    rows, positions = _without_padding(inputs), None
    if rows is not None:
        inputs_of_tokens = _taken(inputs, rows)
        positions = rows.firsts if inputs.pooled_only else None
    else:
        inputs_of_tokens = inputs
        positions = inputs.computed_positions(has_pooler=encoder.has_pooler)
    shared = Shared(
        bias=inputs.attention_bias(),
        key=inputs.dropout_key,
        numbers=None if rows is None else rows.numbers,
    )
    hidden_states = [_embedded(encoder.embeddings, inputs_of_tokens, shared)]
    for block in encoder.blocks:
        read = positions if block is encoder.blocks[-1] else None
        hidden_states.append(call_block(block, hidden_states[-1], shared, read))
    if rows is not None:
        hidden = hidden_states[-1]
        hidden = tf.transpose(hidden, [1, 0, 2]) if inputs.pooled_only else rows.padded(hidden)
        hidden_states = [hidden]
    return encoder.outputs(inputs, hidden_states)


class Forward(Implementation):
    """The fast path of one training step.

    For graphs that run on processors, in float32 or in bfloat16 with variables in float32, and that
    XLA does not compile.

    `traces_once` traces one block for all, since tracing is most of the time before the first step.
    Outputs and gradients are bit by bit those of blocks traced one by one, unless TensorFlow
    rewrites the graphs; `graphs` are by the first block of an encoder.
    """

    def __init__(self, *, traces_once: bool = False):
        self._traces_once = traces_once
        self.graphs: dict[TransformerBlock, Any] = {}

    def encode(self, encoder: Any, inputs: EncoderInputs) -> dict[str, Any]:
        if not self._traces_once:
            return encode(encoder, inputs)
        return encode(
            encoder,
            inputs,
            lambda block, *arguments: self.repeated(encoder.blocks[0], block, *arguments),
        )

    def masked_lm_logits(self, head: MaskedLMHead, hidden: Any, word_embeddings: Any) -> Any:
        return head.logits(project(head.transform, hidden), word_embeddings)

    def repeated(
        self,
        first: TransformerBlock,
        block: TransformerBlock,
        hidden: Any,
        shared: Shared,
        positions: Any | None = None,
    ) -> Any:
        """`block_output` by the graph of the first block, of the same config, dtypes and shapes."""
        # A call's gradients are computed whole, so frozen blocks are called directly. So is one
        # that computes only some positions, unlike the others.
        if not block.trainable or positions is not None:
            return block_output(block, hidden, shared, positions)
        if first not in self.graphs:
            self.graphs[first] = tf.function(
                lambda *arguments: _with_weights(first, *arguments), autograph=False
            )
        weights = [tf.convert_to_tensor(variable.value) for variable in block.variables]
        offset = tf.constant(block.first_dropout_stream - first.first_dropout_stream, tf.int64)
        return self.graphs[first](weights, hidden, shared.bias, shared.key, shared.numbers, offset)


def _with_weights(
    block: TransformerBlock,
    weights: list[Any],
    hidden: Any,
    bias: Any | None,
    key: Any | None,
    numbers: Any | None,
    offset: Any,
) -> Any:
    if bias is not None:  # or a call would sum up its gradient, which nobody needs
        bias = tf.stop_gradient(bias)
    with keras.StatelessScope() as scope:
        for variable, value in zip(block.variables, weights, strict=True):
            # Not by `state_mapping`, which converts to the variable's own dtype.
            scope.add_update((variable, value))
        shared = Shared(bias=bias, key=key, numbers=numbers, offset=offset)
        outputs = block_output(block, hidden, shared)
    # What is known of the shape is known after every block: one graph fits them all.
    outputs.set_shape(hidden.shape)
    return outputs


def _embedded(layer: BertEmbeddings, inputs: EncoderInputs, shared: Shared) -> Any:
    embeddings = layer(
        inputs.input_word_ids,
        input_type_ids=inputs.input_type_ids,
        position_ids=inputs.position_ids,
    )
    keep = _kept(layer.dropout, embeddings, shared)
    wide = dropped(at_least_float32(embeddings), keep, layer.dropout.rate)
    return tf.cast(wide, embeddings.dtype)


def _without_padding(inputs: EncoderInputs) -> Unpadded | None:
    is_read = inputs.read_positions is not None or inputs.pooled_positions is not None
    if not inputs.is_padded or is_read or inputs.output_hidden_states:
        return None
    return unpadded(inputs.attention_mask)


def _taken(inputs: EncoderInputs, rows: Unpadded) -> EncoderInputs:
    positions, segments = inputs.position_ids, inputs.input_type_ids
    return dataclasses.replace(
        inputs,
        input_word_ids=rows.take(inputs.input_word_ids),
        input_type_ids=None if segments is None else rows.take(segments),
        position_ids=rows.position_ids if positions is None else rows.take(positions),
    )


def _context_of_first(
    attention: SelfAttention, hidden: Any, shared: Shared, firsts: Any
) -> tf.Tensor:
    kernel, bias = attention.query_key_value.tensors()
    size = hidden.shape[-1] // attention.num_heads
    context = first_token_context(
        gather_positions(hidden, firsts)[0],
        padded_rows(hidden, shared.numbers),
        kernel,
        bias,
        lambda products: _dropped_softmax(attention, products, shared.bias, shared, size),
        num_heads=attention.num_heads,
    )
    return context[None]


def _dropped_softmax(
    attention: SelfAttention, products: Any, bias: Any | None, shared: Shared, head_size: int
) -> Any:
    dropout = attention.probability_dropout
    return dropped_softmax(
        *(products, bias, _kept(dropout, products, shared)),
        scale=head_size**-0.5,
        keep_scale=keep_scale(dropout.rate),
    )


def _kept(dropout: StatelessDropout, inputs: Any, shared: Shared) -> tf.Tensor | None:
    """`StatelessDropout.kept`, drawn by a kernel in a sixth of the time."""
    if shared.key is None or dropout.rate == 0:
        return None
    key, counter = generator_state(shared.key, dropout.stream + shared.offset)
    return kept_elements(key, counter, tf.shape(inputs), level=keep_level(dropout.rate))


def _product(layer: Projection, inputs: Any) -> tuple[Any, Any]:
    """Products [..., size], and the bias that is still to be added, [size]."""
    kernel, bias = layer.tensors()
    return _matrix_product(inputs, kernel), bias


def _matrix_product(inputs: Any, kernel: Any) -> Any:
    shape = keras.ops.shape(inputs)
    products = tf.matmul(tf.reshape(inputs, [-1, shape[-1]]), kernel)
    return tf.reshape(products, [*shape[:-1], kernel.shape[-1]])


def _for_each_head(values: tf.Tensor, kernels: tf.Tensor) -> tf.Tensor:
    """[batch, heads, n] and [heads, n, m] to [batch, heads, m]."""
    return tf.transpose(tf.transpose(values, [1, 0, 2]) @ kernels, [1, 0, 2])
