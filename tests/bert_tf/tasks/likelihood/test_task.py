"""Likelihoods of a graph and of the host are those of the definition, in batches of any size."""

import numpy as np
import pytest
import tensorflow as tf
from behavior.exported_models import LIKELIHOOD, VOCAB
from behavior.small_models import write_model

from bert_tf.base.errors import UsageError
from bert_tf.config.section import build_section
from bert_tf.export.loading import directory_for_task, load_trained_model
from bert_tf.serving.signatures import BATCHED
from bert_tf.tasks.likelihood.declaration import LikelihoodConfig, likelihood_faults
from bert_tf.tasks.registry import declared_task
from bert_tf.weights.model_directory import read_model_directory

TEXTS = ["the film was good", "", "bad", "a city of red and b" * 9, "very very red, it is", "Łódź"]
OTHERS = ["the film were good", "it", "bad?", "the", "red red very, it is", "the city"]
LONGEST = 22
TASK = {**LIKELIHOOD, "max_seq_length": LONGEST + 2}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    path = tmp_path_factory.mktemp("judge") / "model"
    write_model(path, TASK, vocab=VOCAB, seed=5, max_position_embeddings=24)
    return load_trained_model(read_model_directory(path))


def defined_likelihood(trained, text):
    """The sum over tokens of the log-probability of each where it is masked, one row at a time."""
    tokenizer = trained.tokenizer
    tokens = tokenizer.tokenize_texts([text]).ids
    total = 0.0
    for place, token in enumerate(tokens):
        ids = [tokenizer.cls_id, *tokens, tokenizer.sep_id]
        ids[place + 1] = tokenizer.mask_id
        row = tf.constant([ids], tf.int32)
        batch = {
            "input_word_ids": row,
            "input_mask": tf.ones_like(row),
            "input_type_ids": tf.zeros_like(row),
            "masked_lm_positions": tf.constant([[place + 1]]),
        }
        logits = trained.model(batch, training=False).numpy()[0, 0].astype(np.float64)
        total += logits[token] - np.log(np.exp(logits).sum())
    return total, len(tokens)


@pytest.fixture(scope="module", params=["graph", "host"])
def predict(request, trained):
    if request.param == "host":
        return lambda columns: trained.task.host_predictions(
            trained.model, trained.tokenizer, columns
        )
    module = trained.task.serving_module(trained.model, trained.tokenizer)
    graph = module.signatures()[BATCHED]

    def run(columns):
        texts = {name: tf.constant(values, tf.string) for name, values in columns.items()}
        return {
            name: values.numpy()
            for name, values in graph(**texts, batch_tokens=tf.constant(64)).items()
        }

    return run


def test_likelihoods_are_those_of_the_definition(trained, predict):
    found = predict({"text": TEXTS, "text_pair": OTHERS})
    for prefix, texts in (("predicted", TEXTS), ("predicted_pair", OTHERS)):
        for row, text in enumerate(texts):
            total, count = defined_likelihood(trained, text) if row != 3 else (0.0, 0)
            if row == 3 and text == OTHERS[3]:
                total, count = defined_likelihood(trained, text)
            assert found[f"{prefix}_token_count"][row] == count
            assert found[f"{prefix}_log_likelihood"][row] == pytest.approx(total, rel=1e-5)
            perplexity = np.exp(-total / max(count, 1))
            assert found[f"{prefix}_perplexity"][row] == pytest.approx(perplexity, rel=1e-5)
    np.testing.assert_allclose(
        found["predicted_difference"],
        found["predicted_log_likelihood"] - found["predicted_pair_log_likelihood"],
        atol=1e-4,
    )


def test_texts_without_a_likelihood_are_told(trained, predict):
    faults = likelihood_faults(predict({"text": TEXTS, "text_pair": OTHERS}))
    tokens = len(trained.tokenizer.tokenize_texts([TEXTS[3]]).ids)
    assert faults == {
        1: ("text has no token", ""),
        3: ("text is longer than the model reads", f"by {tokens - LONGEST} tokens"),
    }


def test_no_rows(predict):
    assert all(len(values) == 0 for values in predict({"text": [], "text_pair": []}).values())


def test_outputs_of_pairs_are_only_declared_for_pairs():
    single = {**TASK, "columns": {"text": "text", "text_pair": None}}
    names = [field.name for field in declared_task(single, "m").predictions]
    assert names == ["predicted_log_likelihood", "predicted_token_count", "predicted_perplexity"]
    assert len(declared_task(TASK, "m").predictions) == 7


def config_of(**values):
    given = {"run": "model", "output": "out", "task": "likelihood", **values}
    return build_section(LikelihoodConfig, given)


def test_a_model_without_the_head_is_refused_in_a_line(tmp_path):
    encoder = read_model_directory(write_model(tmp_path / "encoder", None, vocab=VOCAB, seed=1))
    with pytest.raises(UsageError, match="^--task likelihood: .* has no masked-LM head") as raised:
        directory_for_task(encoder, config_of())
    assert "\n" not in str(raised.value)


def test_the_columns_are_kept_with_the_model(trained):
    config = config_of(text_column="good", text_pair_column="bad")
    task = directory_for_task(trained.directory, config).task
    assert task["columns"] == {"text": "good", "text_pair": "bad"}
    assert task["max_seq_length"] == 24
