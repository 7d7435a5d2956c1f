"""The masked-LM head: tying."""

import numpy as np
from behavior.layers import check_layer

from bert_tf.config.bert import BertConfig
from bert_tf.layers.masked_lm_head import MaskedLMHead

CONFIG = BertConfig(
    vocab_size=7,
    hidden_size=4,
    num_hidden_layers=1,
    num_attention_heads=1,
    intermediate_size=4,
)


def test_layer():
    inputs = (
        np.random.default_rng(0).normal(size=(2, 1, 4)).astype(np.float32),
        np.random.default_rng(1).normal(size=(7, 4)).astype(np.float32),
    )
    arguments = {"config": CONFIG}
    check_layer(MaskedLMHead, arguments, inputs, shape=(2, 1, 7), output_dtype="float32")


def test_logits_follow_the_table_and_the_bias():
    head = MaskedLMHead(CONFIG, dtype="mixed_bfloat16")
    head.build()
    head.output_bias.assign(np.arange(7))
    logits = head(np.ones((2, 1, 4), np.float32), np.zeros((7, 4), np.float32))
    np.testing.assert_array_equal(logits, np.broadcast_to(np.arange(7), (2, 1, 7)))
