"""Requests that no kernel may see; `test_saved_model_requests.py` sends them to exported models."""

import json

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from tensorflow.python.client import pywrap_tf_session as client

from bert_tf.config.bert import BertConfig
from bert_tf.serving.text_module import checked_ids, checked_texts, json_text

CONFIG = BertConfig(
    vocab_size=10,
    hidden_size=4,
    num_hidden_layers=1,
    num_attention_heads=1,
    intermediate_size=4,
    max_position_embeddings=3,
    type_vocab_size=2,
)


def ids(words, mask=None, types=None):
    words = np.array(words, np.int32)
    mask = np.ones_like(words) if mask is None else np.array(mask, np.int32)
    types = np.zeros_like(words) if types is None else np.array(types, np.int32)
    return {"input_word_ids": words, "input_mask": mask, "input_type_ids": types}


def test_right_requests_are_passed_on():
    texts = {"context": tf.constant(["a", "b"]), "choices": tf.constant([["c"], ["d"]])}
    for name, values in checked_texts(texts, list_inputs=("choices",)).items():
        assert values.numpy().tolist() == texts[name].numpy().tolist()
    rows = ids([[2, 9, 3], [2, 3, 0]], mask=[[1, 1, 1], [1, 0, 1]], types=[[0, 0, 1], [0, 0, 0]])
    for name, values in checked_ids(rows, rank=2, config=CONFIG).items():
        np.testing.assert_array_equal(values, rows[name])
    assert checked_texts({"text": tf.constant([], tf.string)})["text"].shape == [0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"text": "a"}, r"text must have shape \[rows\], got.*\[\]"),
        ({"text": [["a", "b"], ["c", "d"]]}, r"text must have shape \[rows\], got.*\[2 2\]"),
        ({"text": ["a", "b"], "text_pair": ["a"]}, r"text and text_pair must have as many rows"),
        ({"text": ["a"], "batch_tokens": [5]}, r"batch_tokens must have shape \[\], got.*\[1\]"),
        ({"text": ["a"], "choices": ["a"]}, r"choices must have shape \[rows, texts\]"),
        ({"text": ["a"], "choices": [[]]}, r"choices must .* where only rows may be 0"),
    ],
)
def test_texts_of_other_shapes_are_refused(given, message):
    tensors = {
        name: tf.constant(values, tf.int32 if name == "batch_tokens" else tf.string)
        for name, values in given.items()
    }
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"(?s){message}"):
        tf.function(lambda: checked_texts(tensors, list_inputs=("choices",)))()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (ids([2, 3]), r"input_word_ids must have shape \[rows, length\]"),
        (ids([[]]), r"input_word_ids must have shape \[rows, length\], where only rows may be 0"),
        (ids([[2, 3]], mask=[[1]]), "must have the same shape, got"),
        (ids([[2, 3]], types=[[0, 0], [0, 0]]), "must have the same shape, got"),
        (
            ids([[2, 4, 4, 3]]),
            "rows must have at most 3 tokens, .* got.*4",
        ),
        (ids([[2, 10, 3]]), "input_word_ids must be from 0 to 9, got.*2.*10"),
        (ids([[2, -1, 3]]), "input_word_ids must be from 0 to 9, got"),
        (ids([[2, 3]], types=[[0, 2]]), "input_type_ids must be from 0 to 1, got"),
        (ids([[2, 3]], mask=[[1, 2]]), "input_mask must be from 0 to 1, got"),
    ],
)
def test_ids_that_the_model_does_not_have_are_refused(rows, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"(?s){message}"):
        tf.function(lambda: checked_ids(rows, rank=2, config=CONFIG))()


def test_the_optimizer_of_graphs_does_not_take_the_declared_shape_for_the_request(tmp_path):
    """`Session::Run`, as TensorFlow Serving calls it, passes on any shape."""
    module = tf.Module()
    given = tf.TensorSpec([None], tf.string, name="text")

    def lengths(text):
        return {"n": tf.strings.length(checked_texts({"text": text})["text"])}

    traced = tf.function(lengths).get_concrete_function(given)
    tf.saved_model.save(module, str(tmp_path), signatures=traced)
    with tf.Graph().as_default() as graph:
        session = tf.compat.v1.Session(graph=graph)
        loaded = tf.compat.v1.saved_model.load(session, ["serve"], str(tmp_path))
        signature = loaded.signature_def["serving_default"]
        text, n = (
            graph.get_tensor_by_name(info.name)._as_tf_output()
            for info in (signature.inputs["text"], signature.outputs["n"])
        )

        def request(texts):
            feed = {text: np.array(texts, object)}
            return client.TF_SessionRun_wrapper(session._session, None, feed, [n], [], None)

        assert request(["a", "bcd"])[0].tolist() == [1, 3]
        for texts, shape in (("a", r"\[\]"), ([["a", "b"]], r"\[1 2\]")):
            message = rf"text must have shape \[rows\], got\] \[{shape}\]"
            with pytest.raises(tf.errors.InvalidArgumentError, match=message):
                request(texts)


# Texts inside JSON strings, for any text.
TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)


@given(st.lists(TEXTS, min_size=1, max_size=5))
def test_an_escaped_text_is_read_back_by_json(texts):
    found = json_text(tf.constant([text.encode() for text in texts])).numpy()
    assert [json.loads(b'"' + text + b'"') for text in found] == texts


def test_every_control_character_is_escaped():
    text = "".join(map(chr, range(0x80)))
    (found,) = json_text(tf.constant([text])).numpy()
    assert json.loads(b'"' + found + b'"') == text
