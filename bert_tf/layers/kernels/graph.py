"""Kernels as operations of TensorFlow graphs on processors, with their gradients.

Each computes what a chain of Keras' operations elsewhere in `bert_tf.layers` does, in bfloat16 or
float32. A call costs some 30 microseconds besides its work, for Python; the work holds no lock.
Second derivatives are not defined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.layers.kernels.call import Result, bits_of, results_of
from bert_tf.layers.kernels.gelu import gelu, gelu_gradient, tanh_gelu
from bert_tf.layers.kernels.keep_elements import keep_elements
from bert_tf.layers.kernels.pieces import PIECE_SIZE, for_each, pieces_of
from bert_tf.layers.kernels.softmax import softmax, softmax_gradient
from bert_tf.layers.kernels.sum_norm import sum_norm, sum_norm_gradient

if TYPE_CHECKING:
    import tensorflow as tf


def kept_elements(key: tf.Tensor, counter: tf.Tensor, shape: tf.Tensor, *, level: int) -> tf.Tensor:
    """Which draws of dropout are below a level, bool.

    Args:
        key, counter: uint64 [1], of the generator; see `bert_tf.layers.dropout.keep_mask`.
        shape: int32 [rank], of the result.
        level: of 256.
    """
    import tensorflow as tf

    def draw(key: Any, counter: Any, outputs: Any) -> None:
        words = key.view(np.uint32), counter.view(np.uint32)
        flat = outputs.reshape(-1)
        for_each(
            lambda start: keep_elements(*words, level, start, flat[start : start + PIECE_SIZE]),
            range(0, flat.size, PIECE_SIZE),
        )

    return results_of(draw, [key, counter], [(shape, tf.bool)])[0]


def biased_gelu(inputs: tf.Tensor, bias: tf.Tensor, *, is_exact: bool) -> tf.Tensor:
    """GELU of inputs plus bias.

    Args:
        inputs: bfloat16 or float32 [rows, width].
        bias: of their dtype, [width].
        is_exact: or the tanh approximation.
    """
    import tensorflow as tf

    kernel = gelu if is_exact else tanh_gelu

    def forward(*arrays: Any) -> None:
        inputs, bias, outputs, slopes = map(bits_of, arrays)
        for_each(
            lambda rows: kernel(inputs[rows], bias, outputs[rows], slopes[rows]), pieces_of(inputs)
        )

    def backward(*arrays: Any) -> None:
        upstream, slopes, of_inputs = map(bits_of, arrays[:-1])
        of_bias = arrays[-1]
        pieces = pieces_of(upstream)
        sums = np.empty((len(pieces), *of_bias.shape), np.float32)

        def of_piece(number: int) -> None:
            rows = pieces[number]
            gelu_gradient(upstream[rows], slopes[rows], of_inputs[rows], sums[number])

        for_each(of_piece, range(len(pieces)))
        of_bias[:] = sums.sum(axis=0)

    @tf.custom_gradient
    def activate(inputs: tf.Tensor, bias: tf.Tensor) -> tuple[tf.Tensor, Any]:
        outputs, slopes = results_of(forward, [inputs, bias], _like(inputs, inputs))
        return outputs, lambda upstream: results_of(
            backward, [upstream, slopes], _like(inputs, bias)
        )

    return activate(inputs, tf.convert_to_tensor(bias))


def normalized_sum(
    hidden: tf.Tensor,
    change: tf.Tensor,
    keep: tf.Tensor | None,
    gamma: tf.Tensor,
    beta: tf.Tensor,
    *,
    keep_scale: float,
    epsilon: float,
) -> tf.Tensor:
    """LayerNorm of `hidden` plus `change` after dropout.

    Args:
        hidden, change: bfloat16 or float32 [..., width].
        keep: bool of their shape; None for no dropout.
        gamma, beta: float32 [width].
        keep_scale: of what dropout keeps.
        epsilon: added to the variance.
    """
    import tensorflow as tf

    numbers = np.float32(keep_scale), np.float32(epsilon)
    mask = tf.zeros([0, hidden.shape[-1]], tf.bool) if keep is None else keep

    def forward(hidden: Any, change: Any, gamma: Any, beta: Any, mask: Any, outputs: Any) -> None:
        *given, outputs = map(_rows, (hidden, change, mask, outputs))

        def of_piece(rows: slice) -> None:
            sum_norm(*(array[rows] for array in given), gamma, beta, *numbers, outputs[rows])

        for_each(of_piece, pieces_of(outputs))

    def backward(
        upstream: Any, hidden: Any, change: Any, gamma: Any, mask: Any, *gradients: Any
    ) -> None:
        given = [_rows(array) for array in (upstream, hidden, change, mask)]
        of_hidden, of_change = map(_rows, gradients[:2])
        pieces = pieces_of(of_hidden)
        sums = np.empty((2, len(pieces), *gamma.shape), np.float32)

        def of_piece(number: int) -> None:
            rows = pieces[number]
            results = of_hidden[rows], of_change[rows], *sums[:, number]
            sum_norm_gradient(*(array[rows] for array in given), gamma, *numbers, *results)

        for_each(of_piece, range(len(pieces)))
        for of_weights, sum_of_pieces in zip(gradients[2:], sums.sum(axis=1), strict=True):
            of_weights[:] = sum_of_pieces

    @tf.custom_gradient
    def normalize(*sources: tf.Tensor) -> tuple[tf.Tensor, Any]:
        def gradient(upstream: tf.Tensor) -> list[tf.Tensor]:
            return results_of(backward, [upstream, *sources[:3], mask], _like(*sources))

        (outputs,) = results_of(forward, [*sources, mask], _like(sources[0]))
        return outputs, gradient

    return normalize(hidden, change, gamma, beta)


def dropped_softmax(
    scores: tf.Tensor,
    bias: tf.Tensor | None,
    keep: tf.Tensor | None,
    *,
    scale: float,
    keep_scale: float,
) -> tf.Tensor:
    """Softmax of scaled scores plus bias over the last axis, then dropout.

    Args:
        scores: bfloat16 or float32 [batch, heads, queries, keys].
        bias: float32 [1 or batch, 1 or heads, 1 or queries, keys], which gets no gradient; None
            for 0.
        keep: bool of the scores' shape; None for no dropout.
        scale: of the scores.
        keep_scale: of what dropout keeps.
    """
    import tensorflow as tf

    factors = np.float32(scale), np.float32(keep_scale)
    added = tf.zeros([0, 0, 0, 0]) if bias is None else bias
    mask = tf.zeros([0, 0, 0, 0], tf.bool) if keep is None else keep

    def forward(bias: Any, mask: Any, *arrays: Any) -> None:
        scores, outputs, probabilities = map(bits_of, arrays)
        _check_bias(bias, scores.shape)

        def of_piece(rows: slice) -> None:
            added = bias[rows] if len(bias) > 1 else bias
            results = outputs[rows], probabilities[rows]
            softmax(scores[rows], added, mask[rows], *factors, *results)

        for_each(of_piece, pieces_of(scores))

    def backward(upstream: Any, probabilities: Any, mask: Any, of_scores: Any) -> None:
        given = bits_of(upstream), bits_of(probabilities), mask
        of_scores = bits_of(of_scores)

        def of_piece(rows: slice) -> None:
            softmax_gradient(*(array[rows] for array in given), *factors, of_scores[rows])

        for_each(of_piece, pieces_of(of_scores))

    @tf.custom_gradient
    def attend(scores: tf.Tensor) -> tuple[tf.Tensor, Any]:
        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            return results_of(backward, [upstream, probabilities, mask], _like(scores))[0]

        outputs, probabilities = results_of(forward, [added, mask, scores], _like(scores, scores))
        return outputs, gradient

    return attend(scores)


def _like(*tensors: tf.Tensor) -> list[Result]:
    import tensorflow as tf

    return [(tf.shape(tensor), tensor.dtype) for tensor in tensors]


def _check_bias(bias: np.ndarray, shape: tuple[int, ...]) -> None:
    """Raises for a bias that kernels, which check no bounds, would read elsewhere."""
    fits = bias.shape[-1] == shape[-1] and all(
        size in (1, other) for size, other in zip(bias.shape, shape, strict=True)
    )
    if bias.size and not fits:
        raise ValueError(f"an attention bias of shape {bias.shape} for scores of shape {shape}")


def _rows(array: np.ndarray) -> np.ndarray:
    return bits_of(array).reshape(-1, array.shape[-1])
