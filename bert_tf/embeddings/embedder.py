"""The engine that turns texts into vectors, by the encoder of a model directory."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.base.arrays import flat_ranges, offsets_of
from bert_tf.base.errors import InputError
from bert_tf.config.embedding_recipe import prepared_texts
from bert_tf.cpu.cores import settle_threads
from bert_tf.data.rows.encoded_rows import COMPILED_TIMES, Batching, EncodedRows
from bert_tf.data.rows.host_rows import between_specials
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.embeddings.settings import EMBEDDING, TEXT_TOKENS, TOKEN_COLUMNS, EmbedderSettings
from bert_tf.layers.pooling import combine_layers, pool_tokens, unit_vectors
from bert_tf.models.encoder import BertEncoder
from bert_tf.serving.signatures import DEFAULT_BATCH_TOKENS
from bert_tf.training.arithmetic import has_accelerator, inference_form, keep_float32_exact
from bert_tf.weights.model_directory import load_all_weights, read_model_directory
from bert_tf.xla.forward import compiled

_SPECIALS = 2  # [CLS] and [SEP]
_BATCH_TEXTS = 1024  # texts that are tokenized at once, before they are cut; bounds the memory
_INPUTS = ("input_word_ids", "input_mask", "input_type_ids")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenRows:
    """Texts ready for an encoder.

    Attributes:
        rows: `[CLS] tokens [SEP]` of each text, cut to the longest sequence.
        lengths: int64 [texts], tokens of each text with [CLS] and [SEP], before it was cut.
        starts: int64 [tokens of all rows without special tokens], first character, in code points.
        ends: int64 of that shape, the character after the token.
    """

    rows: EncodedRows
    lengths: np.ndarray
    starts: np.ndarray
    ends: np.ndarray


def tokenize_rows(
    tokenizer: WordPieceTokenizer, texts: Sequence[str], *, max_seq_length: int
) -> TokenRows:
    """Tokenize texts and cut them to `max_seq_length` tokens, special tokens included."""
    most = max_seq_length - _SPECIALS
    parts = [
        _first_tokens(tokenizer, texts[begin : begin + _BATCH_TEXTS], most)
        for begin in range(0, max(1, len(texts)), _BATCH_TEXTS)
    ]
    ids, starts, ends, lengths = map(np.concatenate, zip(*parts, strict=True))
    offsets = offsets_of(np.minimum(lengths, most) + _SPECIALS)
    return TokenRows(
        rows=EncodedRows(
            ids=between_specials(ids, offsets, tokenizer),
            offsets=offsets,
            second_starts=np.diff(offsets).astype(np.int32),
        ),
        lengths=lengths + _SPECIALS,
        starts=starts,
        ends=ends,
    )


def _first_tokens(
    tokenizer: WordPieceTokenizer, texts: Sequence[str], most: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return ids, starts and ends of the first tokens of texts, and the tokens of each text."""
    tokens = tokenizer.tokenize_with_characters(texts)
    kept = flat_ranges(tokens.offsets[:-1], np.minimum(tokens.lengths, most))
    return (
        tokens.ids[kept],
        tokens.first_characters[kept],
        tokens.last_characters[kept],
        tokens.lengths,
    )


class Embedder:
    """An `Engine` from texts to vectors, from a model directory or a HuggingFace folder.

    On GPUs, XLA compiles it for at most eight shapes, filled up with rows of padding.

    Args:
        folder: the model.
        settings: the vectors to make.
    """

    def __init__(self, folder: str | Path, settings: EmbedderSettings):
        directory = read_model_directory(folder)
        self.path = directory.path
        self.settings = settings
        self.input_names: tuple[str, ...] = ("text",)
        self.tokenizer = WordPieceTokenizer(directory.vocab, lowercase=directory.lowercase)
        self._encoder = BertEncoder(directory.config, has_pooler=False, dtype="float32")
        load_all_weights(self._encoder, directory)
        self._has_few_shapes = has_accelerator()
        keep_float32_exact()
        if self._has_few_shapes:
            self._forward = compiled(self._vectors, inference_form())
        else:
            specs = [tf.TensorSpec([None, None], tf.int32, name=name) for name in _INPUTS]
            self._forward = tf.function(self._vectors, specs, autograph=False)

    def predict(
        self,
        columns: dict[str, list[str]],
        *,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
        on_rows: Callable[[int], None] | None = None,
        on_tokens: Callable[[int, int], None] | None = None,
    ) -> dict[str, np.ndarray]:
        """Make vectors of texts; see `Engine.predict`.

        Returns:
            text_tokens: int64 [rows], tokens of each text before it was cut, special tokens
                included.
            embedding: float32 [rows, dimensions]; or for vectors of tokens, instead, the columns of
                `TOKEN_COLUMNS`, an array or list per row as objects [rows].
        """
        texts = columns["text"]
        # Equal texts are computed once.
        numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        place = np.array([numbers[text] for text in texts], np.int64)
        repeats = np.bincount(place, minlength=len(numbers))
        prepared = prepared_texts(
            list(numbers), prompt=self.settings.prompt, lowercase=self.settings.lowercase_texts
        )
        tokens = tokenize_rows(
            self.tokenizer, prepared, max_seq_length=self.settings.max_seq_length
        )
        vectors: list[np.ndarray] = [np.empty(0, np.float32)] * len(numbers)
        batching = Batching(
            pad_id=self.tokenizer.pad_id,
            batch_tokens=batch_tokens * (COMPILED_TIMES if self._has_few_shapes else 1),
            max_seq_length=self.settings.max_seq_length,
            has_few_shapes=self._has_few_shapes,
        )
        for chosen in batching.batches(tokens.rows.lengths):
            lengths = tokens.rows.lengths[chosen]
            padded = tokens.rows.padded(chosen, **batching.padding(lengths))
            for row, vector in zip(chosen, self._batch_vectors(padded, lengths), strict=True):
                vectors[row] = vector
            if on_rows is not None:
                on_rows(int(repeats[chosen].sum()))
            if on_tokens is not None:
                on_tokens(int(lengths.sum()), padded["input_mask"].size)
        hidden = self._encoder.config.hidden_size
        if self.settings.tokens:
            outputs = self._token_outputs(tokens, vectors)
        else:
            shape = (len(vectors), self.settings.dimensions(hidden))
            outputs = {EMBEDDING: np.array(vectors).reshape(shape)}
        outputs[TEXT_TOKENS] = tokens.lengths
        return {name: values[place] for name, values in outputs.items()}

    def _batch_vectors(self, batch: dict[str, np.ndarray], lengths: np.ndarray) -> list[np.ndarray]:
        """Return the vector of each row, or its vectors [tokens, dimensions] without specials."""
        values = self._forward(*(tf.constant(batch[name]) for name in _INPUTS)).numpy()
        values = values[: len(lengths)]
        if not np.isfinite(values).all():
            raise InputError(
                f"{self.path}: vectors are not numbers for some rows; the weights are damaged or "
                "training diverged"
            )
        if not self.settings.tokens:
            return list(values)
        return [row[1 : count - 1] for row, count in zip(values, lengths, strict=True)]

    def _vectors(self, word_ids: tf.Tensor, mask: tf.Tensor, type_ids: tf.Tensor) -> tf.Tensor:
        encoded = self._encoder(
            word_ids,
            input_type_ids=type_ids,
            attention_mask=mask,
            training=False,
            output_hidden_states=True,
        )
        chosen = [encoded["hidden_states"][layer] for layer in self.settings.layers]
        states = combine_layers(chosen, self.settings.layer_combination)
        if not self.settings.tokens:
            states = pool_tokens(states, mask, self.settings.pooling)
        return unit_vectors(states) if self.settings.normalize else states

    def _token_outputs(self, tokens: TokenRows, vectors: list[np.ndarray]) -> dict[str, np.ndarray]:
        counts = tokens.rows.lengths - _SPECIALS
        bounds = np.cumsum(counts)[:-1]
        vocab = self.tokenizer.vocab
        values: tuple[list[Any], ...] = (
            [
                [vocab[number] for number in tokens.rows.ids[begin + 1 : end - 1]]
                for begin, end in itertools.pairwise(tokens.rows.offsets)
            ],
            np.split(tokens.starts, bounds),
            np.split(tokens.ends, bounds),
            vectors,
        )
        return {name: _objects(rows) for name, rows in zip(TOKEN_COLUMNS, values, strict=True)}


def load(folder: str | Path, settings: EmbedderSettings, *, threads: int | None) -> Embedder:
    """Load a model; threads can only be set before TensorFlow's first operation."""
    if threads is not None:
        settle_threads(threads)
    return Embedder(folder, settings)


def _objects(rows: list[Any]) -> np.ndarray:
    array = np.empty(len(rows), object)
    for number, row in enumerate(rows):
        array[number] = row
    return array
