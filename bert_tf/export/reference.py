"""What an encoder computes outside any exported graph; tasks have references of their own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bert_tf.data.rows.encoded_rows import encode_texts
from bert_tf.export.loading import TrainedModel
from bert_tf.serving.single_batch import single_batch


def reference_pooled(trained: TrainedModel, texts: Sequence[str]) -> np.ndarray:
    """The pooler's output, float32 [texts, hidden]."""
    longest = trained.directory.config.max_position_embeddings
    rows = encode_texts(trained.tokenizer, texts, None, max_seq_length=longest)
    batch = single_batch(rows, trained.tokenizer.pad_id)
    encoded = trained.encoder(
        batch["input_word_ids"],
        input_type_ids=batch["input_type_ids"],
        attention_mask=batch["input_mask"],
        training=False,
    )
    return np.asarray(encoded["pooled_output"])
