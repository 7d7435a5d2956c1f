"""Which tokens attend to which, in every layer and head."""

from __future__ import annotations

from typing import Any

import numpy as np
from keras import ops

from bert_tf.models.encoder import BertEncoder


def attention_maps(
    encoder: BertEncoder, input_word_ids: Any, input_type_ids: Any | None = None
) -> np.ndarray:
    """The attention of texts of one length, as HuggingFace's `output_attentions`.

    Args:
        encoder: a built model.
        input_word_ids: int32 [batch, length], [CLS] and [SEP] included, no padding.
        input_type_ids: int32 [batch, length], the segment of every token; None for all 0.

    Returns:
        float32 [layers, batch, heads, query, key]; the keys of a query add up to 1.
    """
    states = encoder(input_word_ids, input_type_ids, output_hidden_states=True)["hidden_states"]
    maps = [
        block.attention.probabilities(hidden)
        for block, hidden in zip(encoder.blocks, states[:-1], strict=True)
    ]
    return np.stack([ops.convert_to_numpy(each) for each in maps])
