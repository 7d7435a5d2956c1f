"""The masked-LM head: gathering, tying."""

import numpy as np
from behavior.layers import check_layer
from hypothesis import given, settings
from hypothesis import strategies as st

from bert_tf.config.bert import BertConfig
from bert_tf.layers.masked_lm_head import MaskedLMHead, gather_positions

CONFIG = BertConfig(
    vocab_size=7,
    hidden_size=4,
    num_hidden_layers=1,
    num_attention_heads=1,
    intermediate_size=4,
)


@given(
    batch=st.integers(1, 4),
    length=st.integers(1, 6),
    predictions=st.integers(1, 5),
    seed=st.integers(0, 1000),
)
@settings(max_examples=15)
def test_gathering_equals_numpy(batch, length, predictions, seed):
    generator = np.random.default_rng(seed)
    hidden = generator.normal(size=(batch, length, 3)).astype(np.float32)
    positions = generator.integers(0, length, (batch, predictions))
    expected = np.take_along_axis(hidden, positions[:, :, None], axis=1)
    np.testing.assert_array_equal(gather_positions(hidden, positions), expected)


def test_layer():
    inputs = (
        np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32),
        np.array([[0], [2]]),
        np.random.default_rng(1).normal(size=(7, 4)).astype(np.float32),
    )
    arguments = {"config": CONFIG}
    check_layer(MaskedLMHead, arguments, inputs, shape=(2, 1, 7), output_dtype="float32")


def test_logits_follow_the_table_and_the_bias():
    head = MaskedLMHead(CONFIG, dtype="mixed_bfloat16")
    head.build()
    head.output_bias.assign(np.arange(7))
    hidden = np.ones((2, 3, 4), np.float32)
    positions = np.zeros((2, 1), np.int32)
    logits = head(hidden, positions, np.zeros((7, 4), np.float32))
    np.testing.assert_array_equal(logits, np.broadcast_to(np.arange(7), (2, 1, 7)))
