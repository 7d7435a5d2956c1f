"""The likeliest tokens in NumPy are those of the graph, equal ones included."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.tasks.fill_mask.host import FillMaskHost


@pytest.mark.parametrize("top_k", [1, 3, 5, 20])
def test_of_equally_likely_tokens_the_first_are_taken_as_in_the_graph(top_k):
    generator = np.random.default_rng(2)
    logits = generator.integers(0, 4, (50, 20)).astype(np.float32)
    logits[0] = 1.0
    found = FillMaskHost(input_names=("text",), max_seq_length=8, top_k=top_k).reduce(
        None, np.arange(50), {"logits": logits[:, None]}
    )
    scores, tokens = tf.math.top_k(tf.nn.softmax(logits, axis=-1), top_k)
    np.testing.assert_array_equal(found["tokens"], tokens)
    np.testing.assert_allclose(found["scores"], scores, rtol=1e-5)
    assert found["tokens"][0].tolist() == list(range(top_k))


def test_what_is_not_a_number_stays_so():
    logits = np.array([[[1.0, np.nan, 2.0]], [[3.0, 1.0, 2.0]]], np.float32)
    found = FillMaskHost(input_names=("text",), max_seq_length=8, top_k=2).reduce(
        None, np.arange(2), {"logits": logits}
    )
    assert np.isnan(found["scores"][0]).all()
    assert found["tokens"][1].tolist() == [0, 2]
