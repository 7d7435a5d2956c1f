"""SavedModels: equal to the model they were made from, loadable without this package."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf
from behavior.exported_models import write_kind

from bert_tf.base.errors import BertPipelineError, InputError, UsageError
from bert_tf.engines.saved_model import SavedModelEngine
from bert_tf.export import saved_model
from bert_tf.export.loading import load_trained_model
from bert_tf.export.saved_model import reference_vectors, write_saved_model
from bert_tf.weights.model_directory import read_model_directory, write_task

pytestmark = pytest.mark.slow  # exports models of every kind

WORDS = [
    *("the", "river", "runs", "north", "of", "city", "where", "is", "it", ".", "?", ",", "xyz"),
    *("Łódź", "É", "北京", "🎈", "naïve", "e\u0301t\u0303"),
]


def random_texts(seed: int, lengths: list[int]) -> list[str]:
    generator = np.random.default_rng(seed)
    return ["  ".join(generator.choice(WORDS, length)) for length in lengths]


def test_classifier_equals_the_keras_model(classifier):
    trained, exported = classifier
    lengths = [0, 1, 2, 3, 5, 8, 13, 21, 34] * 3
    texts, replies = random_texts(1, lengths), random_texts(2, lengths[::-1])
    columns = {"text": texts, "text_pair": replies}
    got = exported.predict(columns, batch_tokens=60)
    reference = trained.task.reference_outputs(trained.model, trained.tokenizer, columns)
    wanted = reference["probabilities"]
    assert reference.keys() == {"predicted_score", "probabilities"}
    np.testing.assert_allclose(got["probabilities"], wanted, atol=1e-5)
    labels = np.array(trained.task.labels)[wanted.argmax(axis=1)]
    assert got["predicted_label"].tolist() == labels.tolist()
    assert len(set(labels)) > 1
    np.testing.assert_allclose(got["predicted_score"], wanted.max(axis=1), atol=1e-5)


def test_weights_that_do_not_say_what_they_read_take_texts_and_pairs(tmp_path):
    folder = write_kind(tmp_path / "model", "classifier")
    settings = json.loads((folder / "task.json").read_text())
    texts, replies = random_texts(1, [1, 4, 9, 20, 40]), random_texts(2, [3, 30, 8, 1, 40])

    def trained_with(**changes):
        columns = {**settings["columns"], **changes.pop("columns", {})}
        write_task(folder, {**settings, **changes, "columns": columns})
        return load_trained_model(read_model_directory(folder))

    def probabilities(trained, **columns):
        found = trained.task.host_predictions(trained.model, trained.tokenizer, columns)
        return found["probabilities"]

    pairs = probabilities(trained_with(), text=texts, text_pair=replies)
    single = probabilities(trained_with(columns={"text_pair": None}), text=texts)
    assert np.abs(pairs - single).max() > 0.01
    trained = trained_with(is_pair_optional=True)
    both = write_saved_model(trained, folder)
    empty = [""] * len(texts)
    found = both.predict({"text": texts * 2, "text_pair": [*replies, *empty]})
    np.testing.assert_allclose(found["probabilities"], np.concatenate([pairs, single]), atol=1e-5)
    host = trained.task.host_predictions(
        trained.model, trained.tokenizer, {"text": texts * 2, "text_pair": [*replies, *empty]}
    )
    np.testing.assert_allclose(host["probabilities"], found["probabilities"], atol=1e-5)
    np.testing.assert_array_equal(host["lost_tokens"], found["lost_tokens"])
    served = both.signature("serving_default")(text=tf.constant(texts))
    np.testing.assert_allclose(served["probabilities"], single, atol=1e-5)
    served = both.signature("pairs")(text=tf.constant(texts), text_pair=tf.constant(replies))
    np.testing.assert_allclose(served["probabilities"], pairs, atol=1e-5)


def test_answers_equal_the_numpy_rules(answerer):
    trained, exported = answerer
    generator = np.random.default_rng(3)
    questions = random_texts(4, generator.integers(0, 12, 60))
    contexts = random_texts(5, generator.choice([0, 1, 4, 12, 40, 90], 60))
    got = exported.predict({"question": questions, "context": contexts}, batch_tokens=100)
    wanted = trained.task.host_predictions(
        trained.model, trained.tokenizer, {"question": questions, "context": contexts}
    )
    assert got["predicted_answer"].tolist() == wanted["predicted_answer"]
    np.testing.assert_array_equal(got["predicted_start"], wanted["predicted_start"])
    np.testing.assert_array_equal(got["predicted_end"], wanted["predicted_end"])
    np.testing.assert_allclose(got["predicted_score"], wanted["predicted_score"], atol=1e-5)
    np.testing.assert_allclose(got["predicted_null_odds"], wanted["predicted_null_odds"], atol=1e-4)
    for ranking, entries in zip(got["predicted_nbest"], wanted["predicted_nbest"], strict=True):
        assert len(entries) <= 6  # five spans and no answer
        near = [
            {**each, "probability": pytest.approx(each["probability"], abs=1e-5)}
            for each in entries
        ]
        assert json.loads(ranking) == near
    answered = got["predicted_start"] >= 0
    assert 0 < answered.sum() < 60
    for context, answer, start, end in zip(
        contexts, got["predicted_answer"], got["predicted_start"], got["predicted_end"], strict=True
    ):
        assert answer == (context[start:end] if start >= 0 else "")


def test_embedder_equals_the_encoder(embedder):
    trained, exported = embedder
    texts = random_texts(6, [0, 3, 50])
    got = exported.predict({"text": texts})
    wanted = reference_vectors(trained, texts)
    assert wanted.keys() == {"pooled_output", "mean_embedding"}
    for name, vectors in wanted.items():
        np.testing.assert_allclose(got[name], vectors, atol=1e-5)


@pytest.mark.parametrize("blank", ["", " \n\t "])
def test_blank_texts_have_a_defined_result(classifier, answerer, blank):
    _, exported = classifier
    scores = exported.predict({"text": [blank], "text_pair": [blank]})["probabilities"]
    assert np.isfinite(scores).all()
    got = answerer[1].predict({"question": [blank], "context": [blank]})
    assert got["predicted_answer"].tolist() == [""]
    assert got["predicted_start"].tolist() == got["predicted_end"].tolist() == [-1]
    assert got["predicted_score"].tolist() == [1.0]
    nothing = {"text": "", "start": None, "end": None, "probability": 1.0}
    assert json.loads(got["predicted_nbest"][0]) == [nothing]


def test_no_rows_give_no_predictions(classifier):
    got = classifier[1].predict({"text": [], "text_pair": []})
    assert got["predicted_label"].shape == (0,)
    assert got["probabilities"].shape == (0, 3)


def test_served_labels_come_in_the_order_of_the_probabilities(classifier):
    loaded = tf.saved_model.load(str(classifier[1].path))
    outputs = loaded.signatures["serving_default"](
        text=tf.constant(["the city"]), text_pair=tf.constant(["is it ?"])
    )
    labels = [label.decode() for label in outputs["labels"].numpy()[0]]
    assert labels == ["no", "yes, or so", "Łódź"]
    best = int(np.argmax(outputs["probabilities"][0]))
    assert outputs["predicted_label"].numpy()[0].decode() == labels[best]


def test_a_saved_model_that_differs_is_refused(tmp_path, monkeypatch):
    path = write_kind(tmp_path / "model", "embedder")
    monkeypatch.setattr(saved_model, "largest_difference", lambda *_: float("nan"))
    with pytest.raises(BertPipelineError, match="results differ by nan"):
        saved_model.write_saved_model(load_trained_model(read_model_directory(path)), path)
    assert not (path / "saved_model.pb").exists()


def test_scores_that_are_no_numbers_are_refused(classifier, monkeypatch):
    _, exported = classifier
    loaded = SavedModelEngine(exported.path)
    for variable in loaded._loaded.signatures["batched"].variables:
        variable.assign(variable * np.nan)
    with pytest.raises(InputError, match="is not a number for some rows"):
        loaded.predict({"text": ["it"], "text_pair": ["is"]})


def test_a_model_without_its_head_is_refused(tmp_path):
    path = write_kind(tmp_path / "model", "embedder")
    (path / "task.json").write_text(
        json.dumps(
            {
                "task": "classification",
                "labels": ["a", "b"],
                "columns": {"text": "text", "text_pair": None, "label": "label"},
                "max_seq_length": 16,
            }
        )
    )
    with pytest.raises(UsageError, match="weights of .*classifier.* are missing"):
        load_trained_model(read_model_directory(path))


def test_a_model_is_loaded_from_a_folder_whose_name_is_a_pattern(classifier, tmp_path):
    """TensorFlow takes the path of a SavedModel's variables for one."""
    _, exported = classifier
    folder = shutil.copytree(exported.path, tmp_path / "model[1]*")
    rows = {"text": ["the river"], "text_pair": ["is it ?"]}
    again = SavedModelEngine(folder).predict(rows)
    np.testing.assert_array_equal(again["probabilities"], exported.predict(rows)["probabilities"])
