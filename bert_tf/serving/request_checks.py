"""Checks of requests inside exported graphs: a server passes on any shape and any ids.

TensorFlow Serving runs a graph with the shapes of a request, whatever the signature declares, and
kernels trust them: a scalar text is a segmentation fault in the tokenizer (tensorflow/text issue
1085), and one such request would end the server. A failed check is an InvalidArgumentError.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import tensorflow as tf

from bert_tf.config.bert import BertConfig
from bert_tf.serving.signatures import BATCH_TOKENS, IDS_INPUTS

_ROW_AXES = ("rows", "texts")
_IDS_AXES = {2: ("rows", "length"), 3: ("rows", "sequences", "length")}


def checked_texts(
    given: Mapping[str, tf.Tensor], *, list_inputs: Collection[str] = ()
) -> dict[str, tf.Tensor]:
    """The inputs of a request once their shapes are right.

    Args:
        given: string [n], or [n, texts] of `list_inputs`, by name; perhaps also `batch_tokens`.
        list_inputs: names of the inputs that are lists.
    """
    axes = {
        name: () if name == BATCH_TOKENS else _ROW_AXES[: 2 if name in list_inputs else 1]
        for name in given
    }
    tensors = _of_rank(given, axes)
    texts = [name for name in tensors if name != BATCH_TOKENS]
    if len(texts) == 1:
        return tensors
    rows = tf.stack([tf.shape(tensors[name])[0] for name in texts])
    message = f"{' and '.join(texts)} must have as many rows, got"
    check = tf.debugging.Assert(tf.reduce_all(rows == rows[0]), [message, rows])
    with tf.control_dependencies([check]):
        return {name: tf.identity(values) for name, values in tensors.items()}


def checked_ids(
    given: Mapping[str, tf.Tensor], *, rank: int, config: BertConfig
) -> dict[str, tf.Tensor]:
    """Tokenized rows once their shapes are right and the model has what their ids stand for.

    Args:
        given: `input_word_ids`, `input_mask` and `input_type_ids`, int32 of the same shape.
        rank: axes of that shape, of which the last is the tokens.
        config: of the model that looks the ids up.
    """
    tensors = _of_rank(given, dict.fromkeys(IDS_INPUTS, _IDS_AXES[rank]))
    shapes = [tf.shape(tensors[name]) for name in IDS_INPUTS]
    length, longest = shapes[0][-1], config.max_position_embeddings
    bounds = zip(IDS_INPUTS, (config.vocab_size, 2, config.type_vocab_size), strict=True)
    checks = [
        tf.debugging.Assert(
            tf.reduce_all(tf.stack(shapes) == shapes[0]),
            [f"{', '.join(IDS_INPUTS)} must have the same shape, got", *shapes],
        ),
        tf.debugging.Assert(
            length <= longest,
            [f"rows must have at most {longest} tokens, the positions of the model, got", length],
        ),
        *(_in_range(name, tensors[name], below) for name, below in bounds),
    ]
    with tf.control_dependencies(checks):
        return {name: tf.identity(values) for name, values in tensors.items()}


def _in_range(name: str, values: tf.Tensor, below: int) -> tf.Operation:
    least, most = tf.reduce_min(values), tf.reduce_max(values)
    # Of no rows the least is above the most.
    is_known = (least > most) | ((least >= 0) & (most < below))
    message = f"{name} must be from 0 to {below - 1}, got from"
    return tf.debugging.Assert(is_known, [message, least, most])


def _of_rank(
    given: Mapping[str, tf.Tensor], axes: Mapping[str, tuple[str, ...]]
) -> dict[str, tf.Tensor]:
    checks, tensors = [], {}
    for name, values in given.items():
        fed = tf.raw_ops.PlaceholderWithDefault(input=values, shape=tf.TensorShape(None))
        # As text: the graph's optimizer computes ranks, and checks of them, from declared shapes.
        shape = tf.strings.format("{}", tf.shape(fed), summarize=-1)
        sizes = [r"\d+", *([r"[1-9]\d*"] * (len(axes[name]) - 1))][: len(axes[name])]
        is_right = tf.strings.regex_full_match(shape, rf"\[{' '.join(sizes)}\]")
        message = f"{name} must have shape [{', '.join(axes[name])}], got"
        if len(sizes) > 1:
            message = message.replace(", got", ", where only rows may be 0, got")
        checks.append(tf.debugging.Assert(is_right, [message, shape]))
        tensors[name] = fed
    with tf.control_dependencies(checks):
        return {
            name: tf.ensure_shape(values, [None] * len(axes[name]))
            for name, values in tensors.items()
        }
