"""The probability that a text follows another, inside one graph."""

from __future__ import annotations

from typing import ClassVar

import tensorflow as tf

from bert_tf.data.text.vocab_file import SPECIALS_OF_PAIR
from bert_tf.serving.signatures import LOST_TOKENS, ROW_TOKENS
from bert_tf.serving.text_module import TextModule


class NextSentenceModule(TextModule):
    """Predicts the probability that `text_pair` follows `text`.

    Outputs: `predicted_score` float32 [n], the probability of label 0 of the next-sentence head;
    `lost_tokens` int32 [n], tokens cut off pairs that are too long, from the end of the longer text
    first; `row_tokens` int32 [n].

    Args:
        model: built `BertNextSentence` with its weights, float32.
        tokenizer: its tokenizer.
        max_seq_length: tokens of a pair, special tokens included.
    """

    input_names: ClassVar[tuple[str, ...]] = ("text", "text_pair")

    def predict(self, texts: dict[str, tf.Tensor], batch_tokens: tf.Tensor) -> dict[str, tf.Tensor]:
        first = self.tokenizer.tokenize(texts["text"])
        second = self.tokenizer.tokenize(texts["text_pair"])
        word_ids, type_ids = self.packed(first, second)
        (logits,) = self.over_rows(
            lambda batch, _: (self.head_outputs(batch)["logits"],),
            (word_ids, type_ids),
            batch_tokens,
            tf.TensorSpec([2], tf.float32),
        )
        lengths = tf.cast(word_ids.row_lengths(), tf.int32)
        tokens = tf.cast(first.row_lengths() + second.row_lengths(), tf.int32)
        return {
            "predicted_score": tf.nn.softmax(logits, axis=-1)[:, 0],
            LOST_TOKENS: tokens + SPECIALS_OF_PAIR - lengths,
            ROW_TOKENS: lengths,
        }
