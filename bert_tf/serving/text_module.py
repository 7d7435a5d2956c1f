"""The base of all exported models: texts in, one graph that tokenizes, batches and predicts."""

from __future__ import annotations

import abc
import dataclasses
import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar

import tensorflow as tf

from bert_tf.config.bert import BertConfig
from bert_tf.data.text.wordpiece import WordPieceTokenizer, pack_pairs
from bert_tf.layers.implementation import FORWARD_ONLY, computing_by
from bert_tf.serving.row_batches import BatchRows, Forward, map_row_batches, whole_rows
from bert_tf.serving.signatures import (
    BATCH_TOKENS,
    BATCHED,
    DEFAULT_BATCH_TOKENS,
    IDS,
    IDS_INPUTS,
    NOT_OF_ROWS,
    PAIRS,
    SERVING,
)

Signatures = dict[str, Callable[..., Any]]

# Characters that JSON escapes inside a text; the backslash first, since other escapes have one
_JSON_ESCAPES = {character: json.dumps(character)[1:-1] for character in ("\\", '"')} | {
    chr(code): json.dumps(chr(code))[1:-1] for code in range(0x20)
}
_PLAIN_TEXT = r'[^\x00-\x1f"\\]*'

_ROW_AXES = ("rows", "texts")
_IDS_AXES = {2: ("rows", "length"), 3: ("rows", "sequences", "length")}


@dataclasses.dataclass(frozen=True)
class _Untracked:
    """Hides a Keras model from tf.Module, which would save its methods beside its variables."""

    model: Any


class TextModule(tf.Module, abc.ABC):
    """Base of the modules: string [n] inputs by name, outputs by name with n as their first axis.

    A saved module has three signatures: `serving_default` takes only the texts, `batched` also
    takes `batch_tokens` (int32 scalar, tokens per batch inside the graph), and `ids` takes rows
    that were tokenized and padded elsewhere. If some inputs are optional, `serving_default` goes
    without them and a fourth signature, `pairs`, takes all.

    Args:
        model: built Keras model with its weights, float32.
        tokenizer: its tokenizer.
        max_seq_length: tokens of a sequence, [CLS] and [SEP] included.

    Attributes:
        input_names: names of the inputs.
        list_inputs: inputs with several texts for each row: string [n, texts], where empty texts
            are padding.
        ids_rank: axes of tokenized rows: 2 for [n, length], 3 for [n, sequences, length].
    """

    input_names: ClassVar[tuple[str, ...]]
    list_inputs: ClassVar[tuple[str, ...]] = ()
    ids_rank: ClassVar[int] = 2

    def __init__(self, model: Any, tokenizer: WordPieceTokenizer, max_seq_length: int):
        super().__init__(name=type(self).__name__)
        self.tokenizer = tokenizer
        self.max_seq_length = max_seq_length
        self.model_weights = [variable.value for variable in model.weights]
        self._untracked = _Untracked(model)

    @property
    def model(self) -> Any:
        """Return the Keras model."""
        return self._untracked.model

    @abc.abstractmethod
    def predict(self, texts: dict[str, tf.Tensor], batch_tokens: tf.Tensor) -> dict[str, tf.Tensor]:
        """Compute outputs by name; graph-safe.

        Args:
            texts: string [n], or [n, texts], by the names of `inputs`.
            batch_tokens: int32 scalar, see `map_row_batches`.
        """

    def inputs(self) -> tuple[str, ...]:
        """Return the names of the inputs; fewer than `input_names` if the task leaves some out."""
        return self.input_names

    def optional_inputs(self) -> tuple[str, ...]:
        """Return the inputs that `serving_default` leaves out; it takes empty texts for them."""
        return ()

    def head_outputs(self, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Run the model on tokenized rows; graph-safe.

        Args:
            batch: `input_word_ids`, `input_mask` (1 for tokens, 0 for padding) and
                `input_type_ids`: int32 [n, length], or [n, sequences, length].
        """
        return {"logits": self.model(batch, training=False)}

    def packed(
        self, tokens: tf.RaggedTensor, second: tf.RaggedTensor | None = None
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
        """Return word and type ids of texts or pairs, see `pack_pairs`."""
        return pack_pairs(
            tokens,
            second,
            max_seq_length=self.max_seq_length,
            tokenizer=self.tokenizer,
            is_second_optional=bool(self.optional_inputs()),
        )

    def over_rows(
        self,
        forward: Forward,
        rows: BatchRows | tuple[tf.RaggedTensor, tf.RaggedTensor],
        batch_tokens: tf.Tensor,
        *outputs: tf.TensorSpec,
        max_rows: int | None = None,
    ) -> tuple[tf.Tensor, ...]:
        """Run a model over rows, or over word and type ids of rows; see `map_row_batches`."""
        return map_row_batches(
            forward,
            rows if isinstance(rows, BatchRows) else whole_rows(*rows),
            batch_tokens=batch_tokens,
            max_seq_length=self.max_seq_length,
            pad_id=self.tokenizer.pad_id,
            outputs=outputs,
            max_rows=max_rows,
        )

    def signatures(self) -> Signatures:
        """Return the functions to save, by name, traced."""
        texts = {
            name: tf.TensorSpec(
                [None, None] if name in self.list_inputs else [None], tf.string, name=name
            )
            for name in self.inputs()
        }
        budget = tf.TensorSpec([], tf.int32, name=BATCH_TOKENS)

        # Autograph would also convert tensorflow_text, which takes a third of the time.
        @tf.function(autograph=False)
        def predict(**given: tf.Tensor) -> dict[str, tf.Tensor]:
            texts = checked_texts(given, list_inputs=self.list_inputs)
            batch_tokens = texts.pop(BATCH_TOKENS)
            with computing_by(FORWARD_ONLY):
                return self.predict(texts, batch_tokens)

        batched = predict.get_concrete_function(**texts, **{BATCH_TOKENS: budget})

        @tf.function(autograph=False)
        def serve(**given: tf.Tensor) -> dict[str, tf.Tensor]:
            left_out = {
                name: tf.fill(tf.shape(next(iter(given.values()))), "")
                for name in texts
                if name not in given
            }
            budget = tf.constant(DEFAULT_BATCH_TOKENS)
            return _of_rows(batched(**given, **left_out, **{BATCH_TOKENS: budget}))

        optional = self.optional_inputs()
        needed = {name: spec for name, spec in texts.items() if name not in optional}
        with_optional = {PAIRS: serve.get_concrete_function(**texts)} if optional else {}
        return {
            SERVING: serve.get_concrete_function(**needed),
            **with_optional,
            BATCHED: batched,
            IDS: self._ids_signature(),
        }

    def ids_signatures(self) -> Signatures:
        """Return the traced functions to save, by name, for a model that only takes ids."""
        ids = self._ids_signature()
        return {SERVING: ids, IDS: ids}

    def without_texts(self) -> tf.Module:
        """Return the module that is saved with `ids_signatures`: only the weights."""
        weights = tf.Module(name=self.name)
        weights.model_weights = self.model_weights
        return weights

    def _ids_signature(self) -> Callable[..., Any]:
        """Return the traced function over tokenized rows."""

        @tf.function(autograph=False)
        def head(**given: tf.Tensor) -> dict[str, tf.Tensor]:
            batch = checked_ids(given, rank=self.ids_rank, config=self.model.config)
            with computing_by(FORWARD_ONLY):
                return self.head_outputs(batch)

        shape = [None] * self.ids_rank
        rows = {name: tf.TensorSpec(shape, tf.int32, name=name) for name in IDS_INPUTS}
        concrete: Callable[..., Any] = head.get_concrete_function(**rows)
        return concrete


class MaskedLMModule(TextModule):
    """Base of the modules around a `BertMaskedLM`, which scores the vocabulary at positions."""

    def head_outputs(self, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        shape = tf.shape(batch["input_word_ids"])
        positions = tf.broadcast_to(tf.range(shape[1]), shape)
        return {"logits": self.model({**batch, "masked_lm_positions": positions}, training=False)}


def _of_rows(outputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Repeat outputs that describe the model for each row.

    TensorFlow Serving only answers a request in its row format if every output has a value for each
    row (MakeRowFormatJsonFromTensors of its json_tensor.cc).
    """
    of_rows = next(values for name, values in outputs.items() if name not in NOT_OF_ROWS)
    rows = tf.shape(of_rows)[0]
    return {
        name: tf.repeat(values[None], rows, axis=0) if name in NOT_OF_ROWS else values
        for name, values in outputs.items()
    }


def json_text(texts: tf.Tensor) -> tf.Tensor:
    """Escape UTF-8 texts for JSON, without quotes around them: string of any shape; graph-safe."""
    changed = tf.where(~tf.strings.regex_full_match(texts, _PLAIN_TEXT))
    escaped = tf.gather_nd(texts, changed)
    for character, written in _JSON_ESCAPES.items():
        pattern = f"\\x{ord(character):02x}"
        escaped = tf.strings.regex_replace(escaped, pattern, written.replace("\\", "\\\\"))
    return tf.tensor_scatter_nd_update(texts, changed, escaped)


# TensorFlow Serving runs a graph with the shapes of a request, which may differ from the
# signature's, and kernels trust them: a scalar text is a segmentation fault in the tokenizer
# (tensorflow/text issue 1085), and a single such request would end the server. A failed check is
# only an InvalidArgumentError.


def checked_texts(
    given: Mapping[str, tf.Tensor], *, list_inputs: Collection[str] = ()
) -> dict[str, tf.Tensor]:
    """Check the shapes of the inputs of a request inside a graph.

    Args:
        given: texts by name, and perhaps `batch_tokens`.
        list_inputs: names of inputs with several texts for each row.

    Returns:
        The same tensors, which depend on the checks.
    """
    axes = {name: _ROW_AXES[: 2 if name in list_inputs else 1] for name in given}
    if BATCH_TOKENS in given:
        axes[BATCH_TOKENS] = ()
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
    """Check the shapes and ids of tokenized rows inside a graph.

    Args:
        given: tensors by the names of `IDS_INPUTS`.
        rank: number of their axes.
        config: config of the model, which bounds ids and lengths.

    Returns:
        The same tensors, which depend on the checks.
    """
    tensors = _of_rank(given, dict.fromkeys(IDS_INPUTS, _IDS_AXES[rank]))
    shapes = [tf.shape(tensors[name]) for name in IDS_INPUTS]
    length = shapes[0][-1]
    longest = config.max_position_embeddings
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
    """Return the check that all values are from 0 to before `below`."""
    least = tf.reduce_min(values)
    most = tf.reduce_max(values)
    # Without rows, the least value is above the greatest.
    is_known = (least > most) | ((least >= 0) & (most < below))
    message = f"{name} must be from 0 to {below - 1}, got from"
    return tf.debugging.Assert(is_known, [message, least, most])


def _of_rank(
    given: Mapping[str, tf.Tensor], axes: Mapping[str, tuple[str, ...]]
) -> dict[str, tf.Tensor]:
    """Return tensors of known rank, which depend on checks of their shapes.

    Args:
        given: tensors by name.
        axes: names of the axes of each tensor; all axes but the first must have a size above 0.
    """
    checks = []
    tensors = {}
    for name, values in given.items():
        fed = tf.raw_ops.PlaceholderWithDefault(input=values, shape=tf.TensorShape(None))
        # Compared as text, because the graph's optimizer takes ranks from the declared shapes.
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
