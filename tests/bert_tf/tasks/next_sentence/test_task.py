"""The probability that a text follows is that of label 0 of the next-sentence head."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from behavior.exported_models import LIKELIHOOD, NEXT_SENTENCE, VOCAB
from behavior.small_models import write_model

from bert_tf.base.errors import UsageError
from bert_tf.config.section import build_section
from bert_tf.export.loading import directory_for_task, load_trained_model
from bert_tf.serving.row_batches import single_batch
from bert_tf.serving.signatures import BATCHED
from bert_tf.tasks.next_sentence.declaration import NextSentenceConfig, untrained_head
from bert_tf.weights.model_directory import read_model_directory

TEXTS = ["the film was good", "", "a city of red and " * 9, "it is"]
OTHERS = ["very very good", "it", "the city is red", ""]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    path = tmp_path_factory.mktemp("follower") / "model"
    write_model(path, NEXT_SENTENCE, vocab=VOCAB, seed=5, max_position_embeddings=24)
    return load_trained_model(read_model_directory(path))


def test_graph_and_host_give_the_softmax_of_the_head(trained):
    columns = {"text": TEXTS, "text_pair": OTHERS}
    module = trained.task.serving_module(trained.model, trained.tokenizer)
    texts = {name: tf.constant(values) for name, values in columns.items()}
    of_graph = module.signatures()[BATCHED](**texts, batch_tokens=tf.constant(64))
    of_host = trained.task.host_predictions(trained.model, trained.tokenizer, columns)
    rows = trained.task.host().encode(trained.tokenizer, columns).sequences
    logits = trained.model(single_batch(rows, 0), training=False).numpy().astype(np.float64)
    expected = np.exp(logits[:, 0]) / np.exp(logits).sum(axis=1)
    np.testing.assert_allclose(of_host["predicted_score"], expected, rtol=1e-6)
    np.testing.assert_allclose(of_graph["predicted_score"].numpy(), expected, rtol=1e-5)
    np.testing.assert_array_equal(of_graph["lost_tokens"].numpy(), of_host["lost_tokens"])
    assert of_host["lost_tokens"].tolist()[2] > 0


def config_of(**values):
    given = {"run": "model", "output": "out", "task": "next-sentence", **values}
    return build_section(NextSentenceConfig, given)


def test_a_model_without_the_head_is_refused_in_a_line(tmp_path):
    path = write_model(tmp_path / "masked", LIKELIHOOD, vocab=VOCAB, seed=1)
    masked = dataclasses.replace(read_model_directory(path), task=None)
    with pytest.raises(UsageError, match="has no next-sentence head; take a run") as raised:
        directory_for_task(masked, config_of())
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("loss", ["nsp_loss", "sop_loss"])
def test_a_run_without_pairs_has_an_untrained_head(loss):
    masked = {"mlm_loss": 3.0, "mlm_accuracy": 0.4}
    assert "is untrained" in untrained_head({"metrics": {"train": masked}})
    assert untrained_head({"metrics": {"train": {**masked, loss: 0.6}}}) is None
    assert untrained_head({"command": "import-weights"}) is None


def test_the_same_column_twice_is_refused():
    with pytest.raises(UsageError, match="text_pair_column: is 'a', as is text_column"):
        config_of(text_column="a", text_pair_column="a")
