"""Which tokens attend to which, in every layer and head."""

from __future__ import annotations

from typing import Any

import numpy as np
from keras import ops

from bert_tf.models.encoder import BertEncoder


def attention_maps(encoder: BertEncoder, input_word_ids: Any) -> np.ndarray:
    """The attention of texts of one length, as HuggingFace's `output_attentions`.

    Args:
        encoder: a built model.
        input_word_ids: int32 [batch, length], [CLS] and [SEP] included, no padding.

    Returns:
        float32 [layers, batch, heads, query, key]; the keys of a query add up to 1.
    """
    states = encoder(input_word_ids, output_hidden_states=True)["hidden_states"]
    maps = [
        block.attention.probabilities(hidden)
        for block, hidden in zip(encoder.blocks, states[:-1], strict=True)
    ]
    return np.stack([ops.convert_to_numpy(each) for each in maps])
