"""Vectors of texts, and the cosine of pairs, inside one graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import tensorflow as tf

from bert_tf.data.text.vocab_file import SPECIALS_OF_TEXT
from bert_tf.layers.pooling import unit_vectors
from bert_tf.serving.signatures import DEFAULT_BATCH_TOKENS, EMBEDDING, LOST_TOKENS, PAIR_EMBEDDING
from bert_tf.serving.text_module import TextModule, checked_texts

EMBED = "embed"


def cosines(first: tf.Tensor, second: tf.Tensor) -> tf.Tensor:
    """Return cosines of vectors [rows, hidden] with those of the same rows, float32 [rows]."""
    return tf.reduce_sum(unit_vectors(first) * unit_vectors(second), axis=-1)


class SimilarityModule(TextModule):
    """Computes vectors of `text` and `text_pair`, and their cosine.

    Outputs: `embedding` and `text_pair_embedding`, float32 [n, hidden]; `predicted_similarity`
    float32 [n]; `lost_tokens` int32 [n], tokens that do not fit into the sequences of both texts.
    A further signature, `embed`, takes only `text` and returns its `embedding`.

    Args:
        model: built `BertSentenceEncoder` with its weights, float32.
        tokenizer: its tokenizer.
        max_seq_length: tokens of a sequence, special tokens included.
    """

    input_names: ClassVar[tuple[str, ...]] = ("text", "text_pair")

    def predict(self, texts: dict[str, tf.Tensor], batch_tokens: tf.Tensor) -> dict[str, tf.Tensor]:
        rows = tf.size(texts["text"])
        both = tf.concat([texts[name] for name in self.input_names], axis=0)
        vectors, lost_tokens = self._embed(both, batch_tokens)
        first = vectors[:rows]
        second = vectors[rows:]
        return {
            EMBEDDING: first,
            PAIR_EMBEDDING: second,
            "predicted_similarity": cosines(first, second),
            LOST_TOKENS: lost_tokens[:rows] + lost_tokens[rows:],
        }

    def signatures(self) -> dict[str, Callable[..., Any]]:
        @tf.function(autograph=False)
        def embed(text: tf.Tensor) -> dict[str, tf.Tensor]:
            texts = checked_texts({"text": text})["text"]
            vectors, _ = self._embed(texts, tf.constant(DEFAULT_BATCH_TOKENS))
            return {EMBEDDING: vectors}

        text = tf.TensorSpec([None], tf.string, name="text")
        return {**super().signatures(), EMBED: embed.get_concrete_function(text=text)}

    def head_outputs(self, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return {EMBEDDING: self.model(batch, training=False)}

    def _embed(self, texts: tf.Tensor, batch_tokens: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Return vectors [n, hidden], and the tokens that each text loses, int32 [n]."""
        tokens = self.tokenizer.tokenize(texts)
        word_ids, type_ids = self.packed(tokens)
        (vectors,) = self.over_rows(
            lambda batch, _: (self.head_outputs(batch)[EMBEDDING],),
            (word_ids, type_ids),
            batch_tokens,
            tf.TensorSpec([self.model.config.hidden_size], tf.float32),
        )
        whole_lengths = tf.cast(tokens.row_lengths(), tf.int32) + SPECIALS_OF_TEXT
        return vectors, whole_lengths - tf.cast(word_ids.row_lengths(), tf.int32)
