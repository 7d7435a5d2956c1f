"""What a model predicts for masks outside any exported graph, a text at a time in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.tasks.fill_mask.declaration import MASK


def masked_token_ids(tokenizer: WordPieceTokenizer, text: str) -> list[int]:
    """Tokens of a text whose masks are tokens of their own, without [CLS] and [SEP]."""
    parts = [tokenizer.tokenize(tf.constant([part])).flat_values for part in text.split(MASK)]
    ids = parts[0].numpy().tolist()
    for part in parts[1:]:
        ids += [tokenizer.mask_id, *part.numpy().tolist()]
    return ids


def mask_probabilities(
    model: Any, tokenizer: WordPieceTokenizer, text: str, *, max_seq_length: int
) -> np.ndarray:
    """The probability of each entry of the vocabulary at each mask, float64 [masks, vocab].

    Args:
        model: built `BertMaskedLM` with its weights, float32.
        tokenizer: the model's.
        text: with any number of masks.
        max_seq_length: tokens per sequence; of a longer text the model reads those around a mask.
    """
    ids = masked_token_ids(tokenizer, text)
    capacity = max_seq_length - 2
    rows = []
    for place in [index for index, token in enumerate(ids) if token == tokenizer.mask_id]:
        begin = max(0, min(place - capacity // 2, len(ids) - capacity))
        words = [tokenizer.cls_id, *ids[begin : begin + capacity], tokenizer.sep_id]
        logits = model(
            {
                "input_word_ids": tf.constant([words]),
                "input_mask": tf.ones([1, len(words)], tf.int32),
                "input_type_ids": tf.zeros([1, len(words)], tf.int32),
                "masked_lm_positions": tf.constant([[place - begin + 1]]),
            }
        )
        odds = np.asarray(logits, np.float64)[0, 0]
        odds = np.exp(odds - odds.max())
        rows.append(odds / odds.sum())
    return np.array(rows).reshape(-1, tokenizer.vocab_size)


def best_probabilities(
    model: Any, tokenizer: WordPieceTokenizer, texts: Sequence[str], *, max_seq_length: int
) -> np.ndarray:
    """The product of the highest probabilities at each text's masks, float32 [texts]."""
    products = [
        mask_probabilities(model, tokenizer, text, max_seq_length=max_seq_length).max(axis=1).prod()
        for text in texts
    ]
    return np.array(products, np.float32)
