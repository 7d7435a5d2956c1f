"""The model card names the data, the metrics and how to load the model."""

from __future__ import annotations

import dataclasses
import io
import json
import re

import pytest

from bert_tf.base.console import Console
from bert_tf.config.bert import BertConfig
from bert_tf.export.loading import load_trained_model
from bert_tf.export.model_card import card_of, model_card
from bert_tf.export.registry import FORMATS
from bert_tf.models.encoder import BertEncoder
from bert_tf.models.heads import BertPretrainingModel
from bert_tf.tasks.registry import task_from_settings
from bert_tf.weights.model_directory import read_model_directory, write_model_directory

CONFIG = BertConfig(vocab_size=100, hidden_size=16, num_hidden_layers=1, num_attention_heads=2)
MANIFEST = {
    "inputs": [{"path": "data/train.csv", "bytes": 1234567, "sha256": "ab" * 32}],
    "metrics": {"best": {"step": 40, "accuracy": 0.91234, "loss": 0.3}},
    "counts": {"train": {"rows_out": 900, "rows_cut": 78, "tokens_lost": 3110}},
    "best_model": {"step": 40, "epoch": 2.0, "phase": None, "metric": "loss", "value": 0.3},
}
PLAIN = {"lowercase": True, "manifest": {}, "written": FORMATS["huggingface"].load(), "notes": []}


@pytest.fixture(scope="module")
def encoder_card(tmp_path_factory):
    """Return the card of an encoder, with the heads of pretraining or without."""

    def make(model_class):
        model = model_class(CONFIG, dtype="float32")
        model.build_weights()
        path = tmp_path_factory.mktemp("encoder") / "model"
        vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *map(str, range(95))]
        write_model_directory(path, model, vocab=vocab, lowercase=True, task=None)
        return card_of(load_trained_model(read_model_directory(path)))

    return make


def test_classification_card():
    settings = {
        "task": "classification",
        "labels": [f"label {number}" for number in range(25)],
        "columns": {"text": "body", "text_pair": "reply", "label": "verdict"},
        "max_seq_length": 64,
    }
    card = model_card(
        CONFIG,
        task_from_settings(settings, "m").card(),
        **{**PLAIN, "manifest": MANIFEST, "written": FORMATS["savedmodel"].load()},
    )
    assert card.startswith("# Text classifier\n")
    assert "| train.csv | 1,234,567 | `abababababababab…` |" in card
    assert "78 of 900 training rows were too long and lost 3,110 tokens.\n" in card
    assert "| accuracy | 0.9123 |" in card
    assert "| step | 40 |" in card
    assert "This is the model of epoch 2 (step 40), with the lowest loss: 0.3000.\n" in card
    assert "- trained on the columns `body` and `reply` (text) and `verdict` (label)\n" in card
    assert "`label 19` and 5 more" in card
    assert "texts are cut at 64 tokens" in card
    assert 'text_pair=tf.constant(["another text"])' in card
    assert "AutoModelForSequenceClassification" in card
    assert "`bert-pipeline evaluate`" in card


@pytest.mark.parametrize("unanswerable", [True, False])
def test_question_answering_card(unanswerable):
    settings = {
        "task": "qa",
        "columns": {"question": "q", "context": "c", "answer": "a", "answer_start": "s"},
        "max_seq_length": 384,
        "doc_stride": 128,
        "max_query_length": 64,
        "max_answer_length": 30,
        "n_best_size": 20,
        "null_score_diff_threshold": -1.25,
        "may_be_unanswerable": unanswerable,
        "tune_null_threshold": True,
        "sentence_margin": 0.5,
    }
    task = task_from_settings(settings, "m")
    manifest = {"metrics": {"best": {"step": 40, "exact_match": 80.0, "f1": 86.23456}}}
    written = {**PLAIN, "manifest": manifest, "written": FORMATS["savedmodel"].load()}
    card = model_card(CONFIG, task.card(), **written)
    assert card.startswith("# Question answering model\n")
    assert "reads the columns `q` and `c`; was trained on `a` and `s`, or on SQuAD JSON" in card
    assert "windows of 384 tokens with a stride of 128; answers up to 30 tokens" in card
    assert ("may remain" in card, "never remains" in card) == (unanswerable, not unanswerable)
    assert ("more than -1.25, tuned for F1 on evaluation rows" in card) == unanswerable
    assert "an answer across sentences" in card
    assert "| f1 | 86.2346 |" in card
    assert "labels" not in card
    assert 'outputs["predicted_answer"]' in card
    assert "AutoModelForQuestionAnswering" in card
    google = model_card(CONFIG, task.card(), **{**PLAIN, "written": FORMATS["google-tf1"].load()})
    assert "run_squad.py" in google
    assert "--do_lower_case=True" in google


@pytest.mark.parametrize(
    ("model_class", "loader"),
    [(BertEncoder, "AutoModel"), (BertPretrainingModel, "AutoModelForPreTraining")],
)
def test_card_of_a_pretrained_model_without_a_run(encoder_card, model_class, loader):
    card = model_card(CONFIG, encoder_card(model_class), **{**PLAIN, "lowercase": False})
    assert "BERT encoder\n" in card.partition("\n\n")[0] + "\n"
    assert "cased" in card
    for absent in ("## Task", "## Data", "saved_model", "bert-pipeline evaluate"):
        assert absent not in card
    assert f" = {loader}.from_pretrained" in card
    assert "fine-tuned for a task (`bert-pipeline finetune --init`)" in card


def test_cards_for_other_libraries_say_how_those_load_it(encoder_card):
    encoder = encoder_card(BertPretrainingModel)
    hub = {**PLAIN, "written": FORMATS["keras-hub"].load(), "notes": ["no head"]}
    card = model_card(CONFIG, encoder, **hub)
    assert 'keras_hub.models.BertBackbone.from_preset("THIS_FOLDER")' in card
    assert "## What differs\n- no head\n" in card
    card = model_card(CONFIG, encoder, **{**PLAIN, "written": FORMATS["google-tf1"].load()})
    assert "run_pretraining.py --bert_config_file=THIS_FOLDER/bert_config.json" in card
    assert "do_lower_case" not in card, "that script takes records, not text"
    assert "transformers" not in card
    headless = dataclasses.replace(encoder, google_script=None)
    card = model_card(CONFIG, headless, **{**PLAIN, "written": FORMATS["google-tf1"].load()})
    assert "`modeling.BertModel` loads the encoder" in card and "run_" not in card


def test_the_card_of_a_distilled_model_names_its_teacher(encoder_card):
    inputs = [
        {"key": key, "path": path, "bytes": 5, "sha256": "ab" * 32}
        for key, path in (("train", "data/train.csv"), ("teacher", "runs/base/best"))
    ]
    of_encoder = encoder_card(BertEncoder)
    card = model_card(CONFIG, of_encoder, **{**PLAIN, "manifest": {"inputs": inputs}})
    assert "besides the labels, it learned the predictions of `base/best`." in card
    other = model_card(CONFIG, of_encoder, **{**PLAIN, "manifest": {"inputs": inputs[:1]}})
    assert "Distilled" not in other


def test_a_run_without_evaluation_has_no_metrics_to_tell(encoder_card):
    inputs = [{"path": "runs/base/best", "bytes": 5, "sha256": "ab" * 32}]
    manifest = {"inputs": inputs, "metrics": {"best": {"step": 40}}}
    card = model_card(CONFIG, encoder_card(BertEncoder), **{**PLAIN, "manifest": manifest})
    assert "## Metrics" not in card
    assert "| base/best | 5 |" in card


@pytest.mark.slow  # exports a model of every kind
@pytest.mark.parametrize(
    "kind", ["classifier", "answerer", "embedder", "chooser", "filler", "comparer"]
)
def test_the_snippet_of_a_card_runs(kind, export, capsys):
    path = export(kind)
    trained = load_trained_model(read_model_directory(path))
    written = {**PLAIN, "written": FORMATS["savedmodel"].load()}
    card = model_card(trained.directory.config, card_of(trained), **written)
    snippet = re.search(r"```python\n(import tensorflow as tf\n.*?)```", card, re.DOTALL)[1]
    exec(snippet.replace("THIS_FOLDER", str(path)), {})
    assert capsys.readouterr().out.startswith("[")


@pytest.mark.slow  # exports models
@pytest.mark.parametrize("kind", ["classifier", "chooser"])
def test_the_snippet_of_a_model_of_ids_runs(kind, export, capsys, tmp_path):
    trained = load_trained_model(read_model_directory(export(kind)))
    written = FORMATS["savedmodel"].load(inputs="ids")
    written.write(trained, tmp_path / "m", Console(io.StringIO()))
    card = model_card(trained.directory.config, card_of(trained), **{**PLAIN, "written": written})
    assert "tensorflow_text" not in card
    snippet = re.search(r"```python\n(import tensorflow as tf\n.*?)```", card, re.DOTALL)[1]
    exec(snippet.replace("THIS_FOLDER", str(tmp_path / "m")), {})
    assert capsys.readouterr().out.startswith("[('logits', array([[")


def test_requests_for_tensorflow_serving_are_json():
    settings = {
        "task": "multiple-choice",
        "columns": {"context": "c", "question": None, "choices": ["a", "b"], "label": "l"},
        "label_form": "number",
        "max_seq_length": 24,
    }
    card = task_from_settings(settings, "m").card()
    for inputs, row in (
        ("text", {"context": "Ada sits down.", "choices": ["writes a letter.", "flies away."]}),
        (
            "ids",
            {
                "input_word_ids": [[2, 1, 3], [2, 1, 3]],
                "input_mask": [[1, 1, 1], [1, 1, 1]],
                "input_type_ids": [[0, 0, 0], [0, 0, 0]],
            },
        ),
    ):
        written = FORMATS["savedmodel"].load(layout="serving", inputs=inputs)
        lines = "\n".join(written.loading(card, lowercase=True))
        body = re.search(r":predict -d '(.*)'", lines)[1]
        assert json.loads(body) == {"instances": [row]}
