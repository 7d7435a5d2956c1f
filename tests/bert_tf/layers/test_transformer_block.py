"""One layer of the encoder: positions that its masks hide, and its normalized sums."""

import numpy as np
import pytest
from behavior.layers import POLICIES, check_layer, check_masked_positions

from bert_tf.config.bert import BertConfig
from bert_tf.layers.self_attention import attention_bias
from bert_tf.layers.transformer_block import TransformerBlock

CONFIG = BertConfig(
    vocab_size=11,
    hidden_size=8,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=12,
    initializer_range=0.5,
)
HIDDEN = np.random.default_rng(0).normal(size=(2, 5, 8)).astype(np.float32)
ARGUMENTS = {"config": CONFIG, "first_dropout_stream": 0}


def test_layer():
    check_layer(TransformerBlock, ARGUMENTS, (HIDDEN,), shape=HIDDEN.shape)


@pytest.mark.parametrize("policy", POLICIES)
def test_masked_positions_have_no_influence(policy):
    layer = TransformerBlock(**ARGUMENTS, dtype=policy)
    layer.build()
    check_masked_positions(layer, HIDDEN, bias_of=attention_bias, visible=3)


def test_outputs_are_normalized():
    layer = TransformerBlock(**ARGUMENTS)
    layer.build()
    outputs = np.asarray(layer(HIDDEN))
    np.testing.assert_allclose(outputs.mean(-1), 0, atol=1e-5)
    np.testing.assert_allclose(outputs.std(-1), 1, atol=1e-4)
