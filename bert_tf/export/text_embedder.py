"""Vectors of texts from a model that was pretrained only, in a graph and outside of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf

from bert_tf.config.embedding_recipe import EmbeddingRecipe, prepared_texts
from bert_tf.data.rows.text_rows import encode_texts
from bert_tf.data.text.wordpiece import WordPieceTokenizer, pack_pairs
from bert_tf.embeddings.settings import EMBEDDING
from bert_tf.export.loading import TrainedModel
from bert_tf.layers.pooling import pool_tokens, unit_vectors
from bert_tf.serving.row_batches import map_row_batches
from bert_tf.serving.single_batch import single_batch
from bert_tf.serving.text_module import TextModule


class TextEmbedder(TextModule):
    """Maps `text` to vectors.

    Outputs, float32 [n, hidden]: `mean_embedding`, the mean of the last layer over all tokens,
    [CLS] and [SEP] included (Reimers and Gurevych 2019, section 3); of an encoder with a pooler its
    `pooled_output` (Devlin et al. 2019, section 3); of a model with a recipe `embedding`, made by
    it.

    Args:
        encoder: built `BertEncoder` with its weights, float32.
        tokenizer: the model's.
        max_seq_length: tokens kept of a text, [CLS] and [SEP] included, where no recipe says it.
        recipe: how the model's folder makes vectors of texts; None where it does not say.
    """

    input_names: ClassVar[tuple[str, ...]] = ("text",)

    def __init__(
        self,
        encoder: Any,
        tokenizer: WordPieceTokenizer,
        *,
        max_seq_length: int,
        recipe: EmbeddingRecipe | None = None,
    ):
        super().__init__(encoder, tokenizer)
        self._max_seq_length = max_seq_length if recipe is None else recipe.max_seq_length
        self._recipe = recipe
        self._vectors = (
            "mean_embedding",
            *(("pooled_output",) if encoder.has_pooler else ()),
            *(() if recipe is None else (EMBEDDING,)),
        )

    def predict(self, texts: dict[str, tf.Tensor], batch_tokens: tf.Tensor) -> dict[str, tf.Tensor]:
        """See `TextModule.predict`."""
        word_ids, type_ids = pack_pairs(
            self.tokenizer.tokenize(self._prepared(texts["text"])),
            None,
            max_seq_length=self._max_seq_length,
            tokenizer=self.tokenizer,
        )

        def embed(batch: dict[str, tf.Tensor], _: tf.Tensor) -> tuple[tf.Tensor, ...]:
            outputs = self.head_outputs(batch)
            return tuple(outputs[name] for name in self._vectors)

        width = tf.TensorSpec([self.model.config.hidden_size], tf.float32)
        vectors = map_row_batches(
            embed,
            word_ids,
            type_ids,
            batch_tokens=batch_tokens,
            pad_id=self.tokenizer.pad_id,
            outputs=(width,) * len(self._vectors),
        )
        return dict(zip(self._vectors, vectors, strict=True))

    def _prepared(self, texts: tf.Tensor) -> tf.Tensor:
        """See `prepared_texts`."""
        if self._recipe is None:
            return texts
        texts = tf.strings.join([self._recipe.prompt(), texts])
        if not self._recipe.lowercase_texts:
            return texts
        return tf.strings.lower(tf.strings.regex_replace(texts, "Σ", "σ"), encoding="utf-8")

    def head_outputs(self, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """The vectors of each row, and `sequence_output`, float32 [n, length, hidden]."""
        encoded = self.model(
            batch["input_word_ids"],
            input_type_ids=batch["input_type_ids"],
            attention_mask=batch["input_mask"],
            training=False,
        )
        sequence, mask = encoded["sequence_output"], batch["input_mask"]
        outputs = {
            "sequence_output": sequence,
            "mean_embedding": pool_tokens(sequence, mask, "mean"),
        }
        if self.model.has_pooler:
            outputs["pooled_output"] = encoded["pooled_output"]
        if self._recipe is not None:
            vectors = pool_tokens(sequence, mask, self._recipe.pooling)
            outputs[EMBEDDING] = unit_vectors(vectors) if self._recipe.normalize else vectors
        return outputs


def reference_vectors(trained: TrainedModel, texts: Sequence[str]) -> dict[str, np.ndarray]:
    """The module's vectors computed outside any exported graph, float32 [texts, hidden]."""
    recipe = trained.recipe
    longest = trained.directory.config.max_position_embeddings
    if recipe is not None:
        longest = recipe.max_seq_length
        texts = prepared_texts(texts, prompt=recipe.prompt(), lowercase=recipe.lowercase_texts)
    rows = encode_texts(trained.tokenizer, texts, None, max_seq_length=longest)
    batch = single_batch(rows, trained.tokenizer.pad_id)
    module = TextEmbedder(trained.encoder, trained.tokenizer, max_seq_length=longest, recipe=recipe)
    outputs = module.head_outputs(batch)
    return {name: np.asarray(value) for name, value in outputs.items() if name != "sequence_output"}
