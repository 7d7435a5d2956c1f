"""Explanations of small models of every task: complete, by words, and right about planted words."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from behavior.exported_models import (
    CLASSIFICATION,
    KINDS,
    MULTI_LABEL,
    QUESTION_ANSWERING,
    VARIANTS,
    VOCAB,
)
from behavior.small_models import write_model

from bert_tf.base.errors import UsageError

pytestmark = pytest.mark.slow  # builds models of every task

ROWS = {
    "classification": {"text": "The River runs north.", "text_pair": "where is it? abc"},
    "multilabel": {"text": "the film was very good and bad and the river runs " * 2},
    "regression": {"text": "was the film good?"},
    "qa": {"question": "where is it?", "context": "the city is north of the river. it runs. " * 2},
    "multiple-choice": {
        "context": "the film was",
        "question": "it is",
        "choices": ["good.", "very bad", "red"],
    },
    "tagging": {"text": "the river runs north of the city. it was red and good."},
}


def explainer_of(folder, task, **config):
    from bert_tf.tasks.explaining.gradients import Explainer

    write_model(folder, task, vocab=VOCAB, seed=5, hidden_size=16, **config)
    return Explainer(folder)


def row_of(task) -> dict:
    row = ROWS[task["task"]]
    return {name: value for name, value in row.items() if task["columns"].get(name) is not None}


TASKS = {
    name: task
    for name, task in {**KINDS, **VARIANTS}.items()
    if task is not None and task["task"] in ROWS
}


@pytest.mark.parametrize("name", TASKS)
def test_shares_add_up_to_the_difference_from_the_masked_row(name, tmp_path):
    task = TASKS[name]
    row = row_of(task)
    found = explainer_of(tmp_path, task, num_hidden_layers=2).explain(row)
    assert found
    for each in found:
        difference = each.logit - each.baseline
        assert each.shares.sum() == pytest.approx(difference, rel=0.01, abs=1e-4)
        for word in each.words:
            text = row[word.input] if word.item is None else row[word.input][word.item]
            assert text[word.begin : word.end] == word.text
            assert " " not in word.text
    if task["task"] != "tagging":
        assert len(found) == (len(task["labels"]) if task["task"] == "multilabel" else 1)


def test_words_are_not_pieces_and_both_texts_are_there(tmp_path):
    (found,) = explainer_of(tmp_path, CLASSIFICATION).explain(row_of(CLASSIFICATION))
    assert [(each.input, each.text) for each in found.words] == [
        *(("text", word) for word in ("The", "River", "runs", "north", ".")),
        *(("text_pair", word) for word in ("where", "is", "it", "?", "abc")),
    ]
    entry = found.as_json()
    assert entry["words"][1]["start"] == 4
    total = sum(each["share"] for each in entry["words"])
    assert total == pytest.approx(entry["logit"] - entry["baseline"], rel=0.01, abs=1e-4)


def test_two_equal_texts_are_told_apart(tmp_path):
    row = {"text": "good film", "text_pair": "good film"}
    (found,) = explainer_of(tmp_path, CLASSIFICATION).explain(row)
    assert [each.input for each in found.words] == ["text"] * 2 + ["text_pair"] * 2


def test_other_tasks_and_models_without_weights_are_refused(tmp_path):
    from bert_tf.tasks.explaining.gradients import Explainer

    write_model(tmp_path / "filler", KINDS["filler"], vocab=VOCAB, seed=1)
    with pytest.raises(UsageError, match="predictions of fill-mask are not explained"):
        Explainer(tmp_path / "filler")
    write_model(tmp_path / "plain", CLASSIFICATION, vocab=VOCAB, seed=1)
    (tmp_path / "plain" / "model.safetensors").unlink()
    with pytest.raises(UsageError, match=r"has no model.safetensors.*--layout serving"):
        Explainer(tmp_path / "plain")


EVIDENCE = {"no": "bad", "yes, or so": "good", "Łódź": "red"}
OTHERS = ["the", "river", "runs", "north", "of", "city", "where", "is", "it", "was", "film"]


def planted(rows: int, rng) -> tuple[list[str], list[int]]:
    """Texts of 8 words, one of which decides the label."""
    texts, labels = [], []
    for _ in range(rows):
        words = list(rng.choice(OTHERS, 8))
        label = int(rng.integers(3))
        words[rng.integers(8)] = list(EVIDENCE.values())[label]
        texts.append(" ".join(words))
        labels.append(label)
    return texts, labels


def test_planted_evidence_comes_first(tmp_path):
    import keras
    import tensorflow as tf

    from bert_tf.tasks.explaining.gradients import Explainer
    from bert_tf.tasks.registry import served_task_from_settings
    from bert_tf.weights.model_directory import (
        load_all_weights,
        read_model_directory,
        write_model_directory,
    )

    task = {**CLASSIFICATION, "columns": {"text": "text", "text_pair": None, "label": "label"}}
    write_model(tmp_path / "new", task, vocab=VOCAB, seed=1, hidden_size=32, initializer_range=0.1)
    directory = read_model_directory(tmp_path / "new")
    served = served_task_from_settings(task, "test")
    model = served.build_model(directory.config, policy="float32")
    load_all_weights(model, directory)
    rng = np.random.default_rng(0)
    texts, labels = planted(256, rng)
    ids = np.array([[2, *(VOCAB.index(word) for word in text.split()), 3] for text in texts])
    optimizer = keras.optimizers.Adam(3e-3)
    optimizer.build(model.trainable_variables)

    @tf.function
    def step(rows, gold):
        batch = {
            "input_word_ids": rows,
            "input_mask": tf.ones_like(rows),
            "input_type_ids": tf.zeros_like(rows),
        }
        with tf.GradientTape() as tape:
            logits = served.sequence_outputs(model, batch)["logits"]
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(gold, logits)
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    for number in range(200):
        chosen = np.arange(64) + 64 * (number % 4)
        loss = step(tf.constant(ids[chosen], tf.int32), tf.constant(np.array(labels)[chosen]))
    assert loss < 0.05
    write_model_directory(tmp_path / "old", model, vocab=VOCAB, lowercase=True, task=task)
    explainer = Explainer(tmp_path / "old")
    texts, labels = planted(40, rng)
    first = 0
    for text, label in zip(texts, labels, strict=True):
        (found,) = explainer.explain({"text": text})
        first += found.words[int(found.shares.argmax())].text == list(EVIDENCE.values())[label]
    assert first >= 0.95 * 40


def test_answers_are_explained_by_their_start_and_end(tmp_path):
    explainer = explainer_of(tmp_path, QUESTION_ANSWERING)
    (found,) = explainer.explain(row_of(QUESTION_ANSWERING))
    assert {each.input for each in found.words} == {"question", "context"}
    assert not MULTI_LABEL["columns"]["text_pair"]


@pytest.mark.parametrize("name", ["classifier", "tagger", "chooser"])
def test_rows_together_are_explained_as_alone_by_graphs_traced_once(name, tmp_path):
    task = TASKS[name]
    row = row_of(task)
    longest = max(row, key=lambda key: len(row[key]))
    shorter = {**row, longest: row[longest][: len(row[longest]) // 2]}
    rows = [shorter, row, shorter, row]
    explainer = explainer_of(tmp_path, task)
    found = dict(explainer.explain_rows(rows))
    assert sorted(found) == [0, 1, 2, 3]
    for number, together in found.items():
        alone = explainer.explain(rows[number])
        assert [each.target for each in together] == [each.target for each in alone]
        for one, other in zip(together, alone, strict=True):
            assert one.words == other.words
            assert one.logit == pytest.approx(other.logit, abs=1e-4)
            np.testing.assert_allclose(one.shares, other.shares, atol=1e-3)
    for graph in (explainer._forward, explainer._backward):
        assert graph.experimental_get_tracing_count() == 1


def test_only_the_sum_of_the_target_at_hand_is_held(monkeypatch):
    """The memory does not grow with the targets, and every target gets its own gradients."""
    from bert_tf.tasks.explaining.gradients import Explainer, _Ends, _Work

    rng = np.random.default_rng(0)
    vectors, masked = rng.normal(size=(2, 3, 64, 32)).astype(np.float32)
    ends = _Ends(vectors, masked, {})
    explainer = object.__new__(Explainer)

    def gradients_at(steps, ends, outputs):
        return np.concatenate(
            [np.full(vectors[work.sequences].shape, work.logit, np.float32) for work, _ in steps]
        )

    monkeypatch.setattr(explainer, "_gradients_at", gradients_at)

    def peak_of(targets):
        work = [
            _Work(0, slice(0, 3) if number % 2 else slice(1, 2), None, float(number), 0.0)
            for number in range(targets)
        ]
        tracemalloc.start()
        shares = explainer._integrated(work, ends, {}, 32)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(shares) == targets
        for each, found in zip(work, shares, strict=True):
            expected = each.logit * (vectors - masked)[each.sequences].sum(axis=-1)
            np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)
        return peak

    peak_of(2)
    one_total = 3 * 64 * 32 * 8
    assert peak_of(104) - peak_of(4) < 25 * one_total, "100 targets have 67 times that in all"
