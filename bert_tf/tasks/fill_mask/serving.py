"""The likeliest tokens for every mask of a text, inside one graph."""

from __future__ import annotations

from typing import Any, ClassVar

import tensorflow as tf

from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.serving.row_batches import map_row_batches
from bert_tf.serving.text_module import TextModule
from bert_tf.tasks.fill_mask.candidate_text import CandidateText
from bert_tf.tasks.fill_mask.declaration import FILL_MASK
from bert_tf.tasks.fill_mask.masked_texts import MaskedTexts, mask_sequences, split_at_masks


class MaskFiller(TextModule):
    """From `text` to the candidates for each of its masks.

    Outputs, all [n]: `predicted_text` string, the text with the best token at every mask;
    `predicted_score` float32, the product of those tokens' probabilities; `predicted_tokens`
    string, JSON: a list of masks in their order, each a list of `top_k` objects with `token`,
    `score` and `text`, which has that token at that mask. Each mask is predicted while the others
    are masked, as HuggingFace's pipeline does; probabilities are over the whole vocabulary.

    A text of more tokens than a sequence is read around each mask.

    Args:
        model: built `BertMaskedLM` with its weights, float32.
        tokenizer: the model's.
        max_seq_length: tokens per sequence, [CLS] and [SEP] included.
        top_k: candidates for each mask.
    """

    input_names: ClassVar[tuple[str, ...]] = FILL_MASK.inputs

    def __init__(
        self, model: Any, tokenizer: WordPieceTokenizer, *, max_seq_length: int, top_k: int
    ):
        super().__init__(model, tokenizer)
        self._max_seq_length = max_seq_length
        self._top_k = top_k
        self._text = CandidateText(tokenizer.vocab)

    def predict(self, texts: dict[str, tf.Tensor], batch_tokens: tf.Tensor) -> dict[str, tf.Tensor]:
        """See `TextModule.predict`."""
        text = texts["text"]
        masked = split_at_masks(text, self.tokenizer)
        tokens, scores = self._candidates(masked, batch_tokens)
        rows = tf.size(text)
        best = tf.math.unsorted_segment_prod(scores[:, 0], masked.mask_rows, rows)
        return {
            "predicted_text": self._text.filled(masked.parts, tokens[:, 0]),
            "predicted_score": best,
            "predicted_tokens": self._text.as_json(text, masked.parts, tokens, scores),
        }

    def head_outputs(self, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """`logits` of every token, float32 [n, length, vocab]."""
        shape = tf.shape(batch["input_word_ids"])
        positions = tf.broadcast_to(tf.range(shape[1]), shape)
        return {"logits": self.model({**batch, "masked_lm_positions": positions}, training=False)}

    def _candidates(
        self, masked: MaskedTexts, batch_tokens: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Ids, int32, and probabilities, float32, of each mask's best tokens: [masks, top_k]."""
        word_ids, places = mask_sequences(
            masked, max_seq_length=self._max_seq_length, tokenizer=self.tokenizer
        )

        def score(batch: dict[str, tf.Tensor], chosen: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            positions = tf.gather(places, chosen)[:, None]
            logits = self.model({**batch, "masked_lm_positions": positions}, training=False)
            scores, tokens = tf.math.top_k(tf.nn.softmax(logits[:, 0], axis=-1), self._top_k)
            return tokens, scores

        tokens, scores = map_row_batches(
            score,
            word_ids,
            tf.zeros_like(word_ids),
            batch_tokens=batch_tokens,
            pad_id=self.tokenizer.pad_id,
            outputs=(
                tf.TensorSpec([self._top_k], tf.int32),
                tf.TensorSpec([self._top_k], tf.float32),
            ),
        )
        return tokens, scores
