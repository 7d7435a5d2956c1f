"""cuDNN's fused attention in a TensorFlow function that XLA compiles for an NVIDIA GPU.

TensorFlow has no operation for it, but the XLA in its wheel has: it compiles custom calls named
`__cudnn$fmha…` to cuDNN's graphs, as `jax.nn.dot_product_attention(implementation="cudnn")` makes
them (jax/_src/cudnn/fused_attention_stablehlo.py). `XlaCallModule` puts a call, as StableHLO text,
into the program of a function with `jit_compile`. It has no gradient of its own, so forward and
backward are two calls under one `tf.custom_gradient`.

What the forward call computes, in float32 between the two products:

    scores = query @ keyᵀ * scale           masked by lengths, or plus a bias
    statistics = logsumexp(scores)          [batch, heads, queries], kept for the gradient
    output = round(softmax(scores)) @ value

It never writes the scores to memory, which is most of the time of attention from 512 tokens on.
tests/bert_tf/xla/test_cudnn.py has the same definition and its gradients in plain operations.

Warning: `tensorflow.compiler.tf2xla.python.xla` is not public. `why_unavailable` says in one line
if it is missing; tests/test_dependencies.py lists it.

Layouts: tensors are [batch, tokens, heads, size] in memory at both ends. The calls return
[batch, heads, tokens, size] stored in that order, so that the transpose after them moves nothing.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

# cuDNN's kernels take these element types and head sizes on every card from compute capability 8.0.
ELEMENT_TYPES = {tf.bfloat16: "bf16", tf.float16: "f16"}
MOST_HEAD_SIZE = 128
HEAD_SIZE_MULTIPLE = 8
# The bias of a hidden key: its probability is 0, and float16 holds the number and the difference
# of two of them.
HIDDEN_KEY = -(2.0**15)
# XlaCallModule checks the version of its calling convention; TensorFlow 2.19 to 2.21 take 5 to 10.
_CALL_MODULE_VERSION = 9
# Tuning of the algorithm that XLA's autotuner starts from; the values that JAX writes.
_ALGORITHM = {
    "algo_id": "0",
    "math_type": "TENSOR_OP_MATH",
    "tuning_knobs": {"17": "1", "24": "0"},
    "is_cudnn_frontend": True,
    "workspace_size": "0",
}


@functools.cache
def why_unavailable() -> str | None:
    """Say why this TensorFlow cannot hold cuDNN's calls; None if it can."""
    try:
        from tensorflow.compiler.tf2xla.python import xla
    except ImportError as error:
        return f"this TensorFlow cannot hold cuDNN's calls ({error})"
    if not hasattr(xla, "call_module"):
        return "this TensorFlow cannot hold cuDNN's calls (it has no call_module)"
    return None


def has_kernel(head_size: int) -> bool:
    """Tell whether cuDNN has kernels for heads of a size."""
    return head_size % HEAD_SIZE_MULTIPLE == 0 and head_size <= MOST_HEAD_SIZE


@dataclasses.dataclass(frozen=True, kw_only=True)
class AttentionShape:
    """The static sizes of one call.

    Attributes:
        queries, keys: tokens of a row that attend, and that are attended to.
        size: of a head, a multiple of 8 up to 128.
        element_type: MLIR's name of the dtype, `bf16` or `f16`.
        bias_heads: second axis of the bias; None for a call that is masked by lengths.
    """

    batch: int
    queries: int
    keys: int
    heads: int
    size: int
    element_type: str
    bias_heads: int | None = None

    @classmethod
    def of(cls, query: tf.Tensor, key: tf.Tensor, bias: tf.Tensor | None) -> AttentionShape:
        """Read the sizes of tensors [batch, tokens, heads, size]; ValueError if one is unknown."""
        batch, queries, heads, size = query.shape.as_list()
        keys = key.shape[1]
        if None in (batch, queries, keys, heads, size):
            raise ValueError(f"fused attention needs static shapes, got {query.shape}, {key.shape}")
        return cls(
            batch=batch,
            queries=queries,
            keys=keys,
            heads=heads,
            size=size,
            element_type=ELEMENT_TYPES[query.dtype],
            bias_heads=None if bias is None else bias.shape[1],
        )

    @property
    def scale(self) -> float:
        """Factor of the scores (Vaswani et al. 2017, section 3.2.1)."""
        return self.size**-0.5

    def tokens(self, count: int) -> str:
        """Return the type of queries, keys, values and outputs at both ends of a module."""
        return f"tensor<{self.batch}x{count}x{self.heads}x{self.size}x{self.element_type}>"

    def heads_first(self, count: int) -> str:
        """Return the type of a call's results."""
        return f"tensor<{self.batch}x{self.heads}x{count}x{self.size}x{self.element_type}>"

    @property
    def statistics(self) -> str:
        return f"tensor<{self.batch}x{self.heads}x{self.queries}xf32>"

    @property
    def mask(self) -> list[str]:
        """Types of the operands that mask: lengths of queries and keys, or a bias."""
        if self.bias_heads is None:
            return [f"tensor<{self.batch}xi32>"] * 2
        sizes = f"{self.batch}x{self.bias_heads}x{self.queries}x{self.keys}"
        return [f"tensor<{sizes}x{self.element_type}>"]


def attention(query: Any, key: Any, value: Any, *, lengths: Any = None, bias: Any = None) -> Any:
    """Attend by cuDNN's kernels, inside a function that XLA compiles for a GPU.

    Args:
        query: bfloat16 or float16 [batch, queries, heads, size], of static shape.
        key, value: of the same dtype, [batch, keys, heads, size].
        lengths: int32 [batch]; the keys of a row from there on are padding. Every query attends,
            also on padding, as in the plain layers. A row without tokens attends to its first key,
            since a softmax over no key is undefined. None with a bias.
        bias: of the same dtype, [batch, 1 or heads, queries, keys], added to the scores; it gets
            no gradient. None with lengths.

    Returns:
        [batch, queries, heads, size] in the same dtype.
    """
    shape = AttentionShape.of(query, key, bias)
    queries = shape.queries
    if bias is not None:
        query, key, value, bias = _in_even_sizes(query, key, value, bias)
        shape = AttentionShape.of(query, key, bias)
    mask = (bias,) if lengths is None else _lengths_of_both(lengths, shape)

    @tf.custom_gradient
    def attend(query: tf.Tensor, key: tf.Tensor, value: tf.Tensor) -> Any:
        output, statistics = _forward(shape, query, key, value, mask)

        def gradient(upstream: tf.Tensor) -> Sequence[tf.Tensor]:
            return _backward(shape, (query, key, value), (output, statistics), upstream, mask)

        return output, gradient

    return attend(query, key, value)[:, :queries]


def _in_even_sizes(
    query: tf.Tensor, key: tf.Tensor, value: tf.Tensor, bias: tf.Tensor
) -> list[tf.Tensor]:
    """Add a query, and a hidden key, where their number is odd.

    With a bias, cuDNN has gradients for even numbers only (`check_is_flash_attention` in JAX). The
    output of the added query is not read, so its gradient is 0.
    """
    queries = query.shape[1] % 2
    keys = key.shape[1] % 2
    if not queries and not keys:
        return [query, key, value, bias]
    padded = [
        tf.pad(each, [[0, 0], [0, added], [0, 0], [0, 0]])
        for each, added in ((query, queries), (key, keys), (value, keys))
    ]
    around = [[0, 0], [0, 0], [0, queries], [0, keys]]
    return [*padded, tf.pad(bias, around, constant_values=tf.constant(HIDDEN_KEY, bias.dtype))]


def _lengths_of_both(lengths: tf.Tensor, shape: AttentionShape) -> tuple[tf.Tensor, tf.Tensor]:
    """Return lengths of queries and keys, int32 [batch] each."""
    return tf.fill([shape.batch], shape.queries), tf.maximum(lengths, 1)


def _forward(
    shape: AttentionShape, query: Any, key: Any, value: Any, mask: tuple[Any, ...]
) -> tuple[tf.Tensor, tf.Tensor]:
    """Compute attention.

    Returns:
        The output [batch, queries, heads, size], and statistics float32 [batch, heads, queries].
    """
    output, statistics = _call_module(
        (query, key, value, *mask),
        forward_module(shape),
        [(query.dtype, query.shape), (tf.float32, (shape.batch, shape.heads, shape.queries))],
    )
    return output, statistics


def _backward(
    shape: AttentionShape,
    inputs: tuple[Any, Any, Any],
    results: tuple[Any, Any],
    upstream: Any,
    mask: tuple[Any, ...],
) -> list[tf.Tensor]:
    """Return gradients of query, key and value, in their shapes and dtypes."""
    output, statistics = results
    upstream = tf.cast(upstream, output.dtype)
    # cuDNN computes the scores again, so it takes the bias once more, before the output.
    bias, lengths = (mask, ()) if shape.bias_heads is not None else ((), mask)
    return _call_module(
        (*inputs, statistics, upstream, *bias, output, *lengths),
        backward_module(shape),
        [(each.dtype, each.shape) for each in inputs],
    )


def _call_module(operands: Sequence[Any], module: str, results: Sequence[Any]) -> list[tf.Tensor]:
    """Put StableHLO into the program; `results` are dtype and shape of each."""
    from tensorflow.compiler.tf2xla.python import xla

    dtypes, shapes = zip(*results, strict=True)
    return xla.call_module(
        operands,
        version=_CALL_MODULE_VERSION,
        module=module,
        Tout=list(dtypes),
        Sout=list(shapes),
        platforms=["CUDA"],
        disabled_checks=["platform"],  # so that a machine without a GPU can compile the program
    )


def forward_module(shape: AttentionShape) -> str:
    """Write the StableHLO of the forward call.

    Operands: query, key, value, and lengths of queries and keys or a bias.
    Results: output [batch, queries, heads, size], statistics float32 [batch, heads, queries].
    """
    types = [shape.tokens(shape.queries), *[shape.tokens(shape.keys)] * 2, *shape.mask]
    return _module(shape, types, [shape.queries], [shape.statistics], is_backward=False)


def backward_module(shape: AttentionShape) -> str:
    """Write the StableHLO of the backward call.

    Operands: query, key, value, statistics, gradient of the output, the bias if there is one, the
    output, and lengths of queries and keys if there is no bias.
    Results: gradients of query, key and value.
    """
    queries, keys = shape.tokens(shape.queries), shape.tokens(shape.keys)
    bias, lengths = (shape.mask, []) if shape.bias_heads is not None else ([], shape.mask)
    types = [queries, keys, keys, shape.statistics, queries, *bias, queries, *lengths]
    return _module(shape, types, [shape.queries, shape.keys, shape.keys], [], is_backward=True)


def _module(
    shape: AttentionShape,
    operands: list[str],
    made_tokens: list[int],
    more_results: list[str],
    *,
    is_backward: bool,
) -> str:
    """Write a module with one custom call.

    Args:
        operands: their types.
        made_tokens: of the results that are [batch, heads, tokens, size], the number of tokens.
        more_results: types of results after them.
        is_backward: which of the two calls.
    """
    target = "__cudnn$fmhaSoftmax" if shape.bias_heads is None else "__cudnn$fmhaScaleBiasSoftmax"
    target += "Backward" if is_backward else ""
    names = [f"%operand{number}" for number in range(len(operands))]
    made = [shape.heads_first(count) for count in made_tokens]
    # Stored as [batch, tokens, heads, size]: minor to major.
    layouts = ["dense<[3, 1, 2, 0]> : tensor<4xindex>"] * len(made)
    layouts += [_row_major(each) for each in more_results]
    layouts.append("dense<0> : tensor<1xindex>")  # of the workspace, whose size XLA finds out
    results = ", ".join([*made, *more_results, "tensor<0xui8>"])
    config = json.dumps(_backend_config(shape, is_backward=is_backward)).replace('"', '\\"')
    lines = [
        f"%made:{len(layouts)} = stablehlo.custom_call @{json.dumps(target)}({', '.join(names)}) {{"
        f'api_version = 2 : i32, backend_config = "{config}", '
        f"operand_layouts = [{', '.join(_row_major(each) for each in operands)}], "
        f"result_layouts = [{', '.join(layouts)}]}} : ({', '.join(operands)}) -> ({results})"
    ]
    returned = []
    types = []
    for number, count in enumerate(made_tokens):
        types.append(shape.tokens(count))
        returned.append(f"%moved{number}")
        lines.append(
            f"%moved{number} = stablehlo.transpose %made#{number}, dims = [0, 2, 1, 3] : "
            f"({made[number]}) -> {types[-1]}"
        )
    for number, each in enumerate(more_results, start=len(made)):
        types.append(each)
        returned.append(f"%made#{number}")
    lines.append(f"return {', '.join(returned)} : {', '.join(types)}")
    arguments = ", ".join(f"{name}: {each}" for name, each in zip(names, operands, strict=True))
    body = "\n".join(lines)
    return (
        f"module @attention {{ func.func public @main({arguments}) -> ({', '.join(types)}) "
        f"{{\n{body}\n}} }}"
    )


def _row_major(tensor_type: str) -> str:
    rank = tensor_type.count("x")
    return f"dense<{list(range(rank))[::-1]}> : tensor<{rank}xindex>"


def _backend_config(shape: AttentionShape, *, is_backward: bool) -> dict[str, Any]:
    """Return XLA's description of the call (xla/service/gpu/backend_configs.proto)."""
    config: dict[str, Any] = {
        "algorithm": _ALGORITHM,
        "fmha_scale": shape.scale,
        "is_flash_attention": True,
        "mask_type": "PADDING" if shape.bias_heads is None else "NO_MASK",
        # cuDNN's own dropout counts its draws in the process, so no run could resume exactly.
        "dropout_rate": 0.0,
        "seed": 42,
        "sliding_window_length": 0,
        "max_seg_per_batch": 1,
        "is_paged_attention": False,
        "intermediate_tensor_shape": {
            "element_type": shape.element_type.upper(),
            "dimensions": [
                str(size) for size in (shape.batch, shape.heads, shape.queries, shape.keys)
            ],
            "tuple_shapes": [],
            "layout": {"minor_to_major": ["3", "2", "1", "0"]},
            "is_dynamic_dimension": [False] * 4,
        },
    }
    return {
        "operation_queue_id": "0",
        "cudnn_fmha_backend_config": config | _products(is_backward=is_backward),
    }


def _products(*, is_backward: bool) -> dict[str, Any]:
    """Describe the products of a call: contracted and batch axes of both sides.

    Tokens are [batch, tokens, heads, size], scores [batch, heads, queries, keys].
    """
    of_tokens, of_scores = (0, 2), (0, 1)
    if not is_backward:
        return {
            "bmm1_dot_dimension_numbers": _axes(3, 3, of_tokens, of_tokens),
            "bmm2_dot_dimension_numbers": _axes(3, 1, of_scores, of_tokens),
        }
    return {
        "bmm1_grad_gemm1_dot_dimension_numbers": _axes(2, 1, of_scores, of_tokens),
        "bmm1_grad_gemm2_dot_dimension_numbers": _axes(3, 1, of_scores, of_tokens),
        "bmm2_grad_gemm1_dot_dimension_numbers": _axes(2, 1, of_scores, of_tokens),
        "bmm2_grad_gemm2_dot_dimension_numbers": _axes(3, 3, of_tokens, of_tokens),
    }


def _axes(
    left: int, right: int, left_batch: tuple[int, int], right_batch: tuple[int, int]
) -> dict[str, list[str]]:
    return {
        "lhs_contracting_dimensions": [str(left)],
        "rhs_contracting_dimensions": [str(right)],
        "lhs_batch_dimensions": [str(axis) for axis in left_batch],
        "rhs_batch_dimensions": [str(axis) for axis in right_batch],
    }
