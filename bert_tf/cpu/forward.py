"""The encoder's forward pass on CPUs: `BertEncoder.call` with kernels between the products.

Outputs and gradients are those of the plain layers, whose variables it reads, up to rounding. It is
faster for four reasons:
- Kernels fuse the element-wise operations between matrix products.
- Padding is left out: only attention sees padded rows (`unpadded`).
- Blocks are traced once, because tracing is most of the time before the first step (`Forward`).
- If only first tokens are read, the last block computes no keys and values (`first_token_context`).
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
# oneDNN prepares products anew for every number of tokens, which takes as long as some products. So
# numbers are rounded up: below 512 to multiples of 8, and the multiple doubles at 512 and each
# further power of two. Between one power of two and the next there are 32 different numbers then.
_LEAST_MULTIPLE = 8
_POWERS = tuple(2**power for power in range(9, 31))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Unpadded:
    """Places of tokens in one long row without padding, and back.

    Padding costs as much as text everywhere except in attention, which needs rows (Zeng et al.
    2022, "Boosting Distributed Training Performance of the Unpadded BERT Model").

    Attributes:
        numbers: int32 [batch, length], number of each token in the long row; -1 for padding left
            out.
        places: int32 [tokens], place of each token in the padded rows, laid end to end.
    """

    numbers: tf.Tensor
    places: tf.Tensor

    @property
    def firsts(self) -> tf.Tensor:
        """Numbers of the first tokens of rows, int32 [1, batch]."""
        return self.numbers[:, 0][None]

    @property
    def position_ids(self) -> tf.Tensor:
        """Place of each token in its padded row, int32 [1, tokens]."""
        return (self.places % tf.shape(self.numbers)[1])[None]

    def take(self, values: Any) -> tf.Tensor:
        """Convert [batch, length] to [1, tokens]."""
        return tf.gather(tf.reshape(values, [-1]), self.places)[None]

    def padded(self, hidden: tf.Tensor) -> tf.Tensor:
        """Convert [1, tokens, hidden] to [batch, length, hidden], 0 on padding left out."""
        return padded_rows(hidden, self.numbers)


def unpadded(mask: Any) -> Unpadded:
    """Assign numbers to the tokens of padded rows, in their order.

    The long row also has the first place of every row, even of one that is all padding, and some
    padding, so that its length is a round number: a multiple of 8, from 512 tokens on of 16, and so
    on, if rows have so many places.

    Args:
        mask: int or bool [batch, length], true on tokens.
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
class PassInputs:
    """Inputs of all blocks of a pass.

    Attributes:
        bias: float32, added to attention scores, broadcasting to [batch, heads, queries, keys];
            None for none.
        key: dropout key, int32 [2]; None without dropout.
        numbers: int32 [batch, length] if hidden states have no padding, see `Unpadded`; None if
            they have.
        offset: int64 [], added to the dropout streams of the layers.
    """

    bias: Any | None = None
    key: Any | None = None
    numbers: Any | None = None
    offset: Any = 0


# Computes a block; see the arguments of `block_output`.
Block = Callable[[TransformerBlock, Any, PassInputs, "Any | None"], Any]


def block_output(
    block: TransformerBlock, hidden: Any, shared: PassInputs, positions: Any | None = None
) -> Any:
    """Compute `TransformerBlock.call`.

    Args:
        block: the block.
        hidden: [batch, length, hidden], or without padding [1, tokens, hidden].
        shared: inputs of all blocks.
        positions: int32 [batch, n], positions to compute, or without padding the numbers of the
            first tokens, [1, batch]; None for all.

    Returns:
        Like `hidden`, or only the positions.
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
    attention: SelfAttention, hidden: Any, shared: PassInputs, positions: Any | None = None
) -> tuple[Any, Any]:
    """Compute `SelfAttention.call`; arguments are those of `block_output`.

    Returns:
        The products, and the bias that is still to be added, [hidden].
    """
    if shared.numbers is not None and positions is not None:
        return _product(
            attention.output_projection, _context_of_first(attention, hidden, shared, positions)
        )
    layer = attention.query_key_value
    num_heads = attention.num_heads
    bias = shared.bias
    if positions is None:
        query, key, value = biased_heads(
            *_product(layer, hidden), shared.numbers, parts=3, num_heads=num_heads
        )
    else:
        # Queries of the positions only, keys and values of all tokens. The gradient of one split
        # into two is one concatenation.
        width = hidden.shape[-1]
        kernel, all_biases = layer.tensors()
        query_kernel, other_kernels = tf.split(kernel, [width, 2 * width], axis=-1)
        query_bias, other_biases = tf.split(all_biases, [width, 2 * width], axis=-1)
        queries = _matrix_product(gather_positions(hidden, positions), query_kernel)
        (query,) = biased_heads(queries, query_bias, parts=1, num_heads=num_heads)
        others = _matrix_product(hidden, other_kernels)
        key, value = biased_heads(others, other_biases, parts=2, num_heads=num_heads)
        bias = bias_of_queries(bias, positions)
    products = tf.matmul(query, key, transpose_b=True)
    probabilities = _dropped_softmax(attention, products, bias, shared, query.shape[-1])
    tokens = None if shared.numbers is None else tf.shape(hidden)[1]
    context = joined_heads(tf.matmul(probabilities, value), shared.numbers, tokens=tokens)
    return _product(attention.output_projection, context)


def project(layer: Projection, inputs: Any) -> Any:
    """Compute `Projection.call`, with GELU fused."""
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
    shared: PassInputs,
) -> Any:
    """Compute `LayerNorm.of_sum`; `change` is a pair of products and the bias still to be added."""
    products, bias = change
    gamma = tf.reshape(layer.gamma, [-1])
    beta = tf.reshape(layer.beta, [-1])
    keep = _kept(dropout, products, shared)
    return normalized_sum(
        hidden,
        products,
        bias,
        keep,
        gamma,
        beta,
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
    """Attend from the first token of each row, without keys and values of all tokens.

    A query q has with the key of a token, W x + b, the product (transpose(W) q) x + q b. The second
    term is the same for all keys of a row, so softmax does not change by it. Values are projected
    after their mean, too: the mean of W x + b with weights p is W times the mean of x, plus b times
    the sum of p. With one query per row, a token costs 2 x heads x width multiplications, instead
    of 2 x width^2 for its key and value and 2 x width for attention.

    Args:
        firsts: float [batch, hidden], hidden states of the first tokens.
        rows: float [batch, length, hidden], padded hidden states.
        kernel, bias: [hidden, 3 * hidden] and [3 * hidden], for queries, keys and values; the bias
            of keys is not used.
        probabilities: maps products, [batch, heads, 1, length], to the weights of values.
        num_heads: number of heads.

    Returns:
        [batch, hidden], still to be projected.
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
    """Compute `BertEncoder.call`, inside a TensorFlow function; blocks by `call_block`."""
    positions = None
    rows = _without_padding(inputs)
    if rows is not None:
        inputs_of_tokens = _taken(inputs, rows)
        positions = rows.firsts if inputs.pooled_only else None
    else:
        inputs_of_tokens = inputs
        positions = inputs.computed_positions(has_pooler=encoder.has_pooler)
    shared = PassInputs(
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
    """The fast path of one training step, for graphs that run on CPUs and that XLA does not
    compile.

    Computes in float32, or in bfloat16 with variables in float32.

    Args:
        traces_once: whether one block is traced for all. Outputs and gradients are bit by bit those
            of blocks traced one by one, unless TensorFlow rewrites the graphs.

    Attributes:
        graphs: function of a block, by the first block of its encoder.
    """

    def __init__(self, *, traces_once: bool = False):
        self._traces_once = traces_once
        self.graphs: dict[TransformerBlock, Any] = {}

    def encode(self, encoder: Any, inputs: EncoderInputs) -> dict[str, Any]:
        """Compute `BertEncoder.call`."""
        if not self._traces_once:
            return encode(encoder, inputs)
        return encode(
            encoder,
            inputs,
            lambda block, *arguments: self.repeated(encoder.blocks[0], block, *arguments),
        )

    def masked_lm_logits(self, head: MaskedLMHead, hidden: Any, word_embeddings: Any) -> Any:
        """Compute `MaskedLMHead.call`, with GELU fused."""
        return head.logits(project(head.transform, hidden), word_embeddings)

    def repeated(
        self,
        first: TransformerBlock,
        block: TransformerBlock,
        hidden: Any,
        shared: PassInputs,
        positions: Any | None = None,
    ) -> Any:
        """Compute `block_output` by the graph of the first block.

        Both blocks must have the same config, dtypes and shapes.
        """
        # A call computes the gradients of all its inputs, so frozen blocks are called directly. So
        # is a block that computes only some positions, unlike the others.
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
    """Compute a block with other weights than its own.

    Args:
        block: the block.
        weights: tensors in the order of `block.variables`.
        hidden: float [rows, width], the rows that enter the block.
        bias, key, numbers: see `PassInputs`.
        offset: int64 scalar, added to the numbers of the block's dropout streams.

    Returns:
        The output of the block, like `hidden`.
    """
    if bias is not None:
        # Otherwise, a call would sum up its gradient, which is not needed.
        bias = tf.stop_gradient(bias)
    with keras.StatelessScope() as scope:
        for variable, value in zip(block.variables, weights, strict=True):
            # The argument `state_mapping` would convert to the variable's own dtype.
            scope.add_update((variable, value))
        shared = PassInputs(bias=bias, key=key, numbers=numbers, offset=offset)
        outputs = block_output(block, hidden, shared)
    # All blocks have inputs of the same static shape then, so that one graph fits them all.
    outputs.set_shape(hidden.shape)
    return outputs


def _embedded(layer: BertEmbeddings, inputs: EncoderInputs, shared: PassInputs) -> Any:
    """Compute `BertEmbeddings.call`, with dropout masks from a kernel."""
    embeddings = layer(
        inputs.input_word_ids,
        input_type_ids=inputs.input_type_ids,
        position_ids=inputs.position_ids,
    )
    keep = _kept(layer.dropout, embeddings, shared)
    wide = dropped(at_least_float32(embeddings), keep, layer.dropout.rate)
    return tf.cast(wide, embeddings.dtype)


def _without_padding(inputs: EncoderInputs) -> Unpadded | None:
    """Return the places of tokens; None if something reads padded rows."""
    is_read = inputs.read_positions is not None or inputs.pooled_positions is not None
    if not inputs.is_padded or is_read or inputs.output_hidden_states:
        return None
    return unpadded(inputs.attention_mask)


def _taken(inputs: EncoderInputs, rows: Unpadded) -> EncoderInputs:
    """Return the inputs of the tokens, without padding, as one row."""
    positions = inputs.position_ids
    segments = inputs.input_type_ids
    return dataclasses.replace(
        inputs,
        input_word_ids=rows.take(inputs.input_word_ids),
        input_type_ids=None if segments is None else rows.take(segments),
        position_ids=rows.position_ids if positions is None else rows.take(positions),
    )


def _context_of_first(
    attention: SelfAttention, hidden: Any, shared: PassInputs, firsts: Any
) -> tf.Tensor:
    """Return the context of the first tokens, [1, batch, hidden]."""
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
    attention: SelfAttention, products: Any, bias: Any | None, shared: PassInputs, head_size: int
) -> Any:
    """Scale products by the root of the head size, and return probabilities after dropout."""
    dropout = attention.probability_dropout
    keep = _kept(dropout, products, shared)
    return dropped_softmax(
        products,
        bias,
        keep,
        scale=head_size**-0.5,
        keep_scale=keep_scale(dropout.rate),
    )


def _kept(dropout: StatelessDropout, inputs: Any, shared: PassInputs) -> tf.Tensor | None:
    """Compute `StatelessDropout.kept` by a kernel, in a sixth of the time; None without dropout."""
    if shared.key is None or dropout.rate == 0:
        return None
    key, counter = generator_state(shared.key, dropout.stream + shared.offset)
    return kept_elements(key, counter, tf.shape(inputs), level=keep_level(dropout.rate))


def _product(layer: Projection, inputs: Any) -> tuple[Any, Any]:
    """Return products [..., size], and the bias that is still to be added, [size]."""
    kernel, bias = layer.tensors()
    return _matrix_product(inputs, kernel), bias


def _matrix_product(inputs: Any, kernel: Any) -> Any:
    """Multiply [..., n] by [n, m], as a product of two matrices."""
    shape = keras.ops.shape(inputs)
    products = tf.matmul(tf.reshape(inputs, [-1, shape[-1]]), kernel)
    return tf.reshape(products, [*shape[:-1], kernel.shape[-1]])


def _for_each_head(values: tf.Tensor, kernels: tf.Tensor) -> tf.Tensor:
    """Multiply [batch, heads, n] by [heads, n, m] for each head: [batch, heads, m]."""
    return tf.transpose(tf.transpose(values, [1, 0, 2]) @ kernels, [1, 0, 2])
