"""Attention of the first token against that of all tokens."""

import numpy as np
import tensorflow as tf

from bert_tf.cpu.forward import first_token_context
from bert_tf.layers.self_attention import SelfAttention, attention_bias


def test_output_and_gradients_are_those_of_keys_and_values():
    generator = np.random.default_rng(2)
    layer = SelfAttention(
        num_heads=3, dropout_rate=0.0, dropout_stream=1, initializer_range=0.5, dtype="float32"
    )
    layer.build((None, None, 12))
    for variable in layer.trainable_variables:
        variable.assign(generator.normal(0, 0.5, variable.shape))
    hidden = tf.constant(generator.normal(size=(4, 7, 12)), tf.float32)
    bias = attention_bias(np.arange(7) < np.array([[7], [3], [1], [5]]))
    kernel, projection_bias = layer.query_key_value.kernel.value, layer.query_key_value.bias.value
    sources = [hidden, kernel, projection_bias]

    def ours():
        context = first_token_context(
            hidden[:, 0],
            hidden,
            kernel,
            projection_bias,
            lambda products: tf.nn.softmax(products / 2.0 + bias),  # 2, the root of the head size
            num_heads=3,
        )
        return layer.output_projection(context)

    def expected():
        return layer(hidden, bias, positions=tf.zeros([4, 1], tf.int32))[:, 0]

    found = []
    for output in (ours, expected):
        with tf.GradientTape() as tape:
            tape.watch(sources)
            values = output()
            loss = tf.reduce_sum(values * tf.reshape(tf.sin(1.0 + tf.range(48.0)), [4, 12]))
        found.append([values, *tape.gradient(loss, sources)])
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)
