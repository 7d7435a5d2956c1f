"""Vectors of texts, and the cosine of pairs, inside one graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import tensorflow as tf

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
    float32 [n]. Also has the signature `embed`, from only `text` to its `embedding`.

    Args:
        model: built `BertSentenceEncoder` with its weights, float32.
    """

    input_names: ClassVar[tuple[str, ...]] = ("text", "text_pair")

    def predict(self, texts: dict[str, tf.Tensor], batch_tokens: tf.Tensor) -> dict[str, tf.Tensor]:
        rows = tf.size(texts["text"])
        both = tf.concat([texts[name] for name in self.input_names], axis=0)
        vectors, lost_tokens = self._embed(both, batch_tokens)
        first, second = vectors[:rows], vectors[rows:]
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
            return {EMBEDDING: self._embed(texts, tf.constant(DEFAULT_BATCH_TOKENS))[0]}

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
        lost = (
            tf.cast(tokens.row_lengths(), tf.int32) + 2 - tf.cast(word_ids.row_lengths(), tf.int32)
        )
        return vectors, lost
