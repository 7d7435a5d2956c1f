"""Attention maps against the definition in NumPy, and as weights of the encoder itself."""

import numpy as np

from bert_tf.config.bert import BertConfig
from bert_tf.models.encoder import BertEncoder, attention_maps

CONFIG = BertConfig(
    vocab_size=30,
    hidden_size=8,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=16,
    max_position_embeddings=20,
    initializer_range=0.5,
)


def defined(attention, hidden):
    """Softmax of q k / sqrt(d), a head and a query at a time (Vaswani et al. 2017, equation 1)."""
    kernel = attention.query_key_value.kernel.numpy()
    bias = attention.query_key_value.bias.numpy()
    query, key, value = np.split(hidden @ kernel + bias, 3, axis=-1)
    size = query.shape[-1] // attention.num_heads
    maps, contexts = [], []
    for head in range(attention.num_heads):
        part = slice(head * size, (head + 1) * size)
        rows = []
        for one in query[:, part]:
            odds = np.exp([one @ other / np.sqrt(size) for other in key[:, part]])
            rows.append(odds / odds.sum())
        maps.append(rows)
        contexts.append(np.array(rows) @ value[:, part])
    output = attention.output_projection
    return np.array(maps), np.concatenate(contexts, -1) @ output.kernel.numpy() + output.bias


def test_attention_is_as_defined_in_every_layer_and_head():
    encoder = BertEncoder(CONFIG)
    encoder.build_weights()
    ids = np.random.default_rng(0).integers(1, 30, (2, 7)).astype(np.int32)
    found = attention_maps(encoder, ids)
    assert (found.shape, found.dtype) == ((2, 2, 2, 7, 7), np.float32)
    states = encoder(ids, output_hidden_states=True)["hidden_states"]
    for layer, block in enumerate(encoder.blocks):
        for row in range(2):
            hidden = states[layer].numpy()[row]
            expected, attended = defined(block.attention, hidden)
            np.testing.assert_allclose(found[layer, row], expected, atol=1e-5)
            ours = block.attention(hidden[None]).numpy()[0]
            np.testing.assert_allclose(ours, attended, atol=1e-5)
