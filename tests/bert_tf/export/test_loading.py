"""Calibrated classifiers: the weights of every format give the calibrated probabilities.

Other libraries compute a softmax of the logits, and know of no temperature.
"""

from __future__ import annotations

import io

import keras
import numpy as np
import pytest
import tensorflow as tf
from behavior.exported_models import CLASSIFICATION, VOCAB
from safetensors.numpy import load_file
from scipy.special import softmax

from bert_tf import load
from bert_tf.base.console import Console
from bert_tf.config.bert import BertConfig
from bert_tf.export.loading import load_trained_model
from bert_tf.export.model_card import card_of
from bert_tf.export.registry import FORMATS
from bert_tf.tasks.registry import served_task_from_settings, task_from_settings
from bert_tf.weights.graph_names import NAMES
from bert_tf.weights.model_directory import (
    load_all_weights,
    read_model_directory,
    write_model_directory,
)

TEMPERATURE = 2.5
SETTINGS = {
    **CLASSIFICATION,
    "columns": {"text": "text", "text_pair": None, "label": "label"},
    "calibration": "temperature",
    "temperature": TEMPERATURE,
}
TEXTS = ["where is the river", "the city was very bad .", "", "film and film"]


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """Return a classifier as `finetune` leaves it: its weights are those before calibration."""
    path = tmp_path_factory.mktemp("calibrated") / "best"
    config = BertConfig(
        vocab_size=len(VOCAB),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=48,
        max_position_embeddings=32,
        initializer_range=0.3,
    )
    keras.utils.set_random_seed(4)
    model = served_task_from_settings(SETTINGS, "").build_model(config, policy="float32")
    model.build_weights()
    model.classifier.bias.assign([1.0, -2.0, 0.5])
    write_model_directory(path, model, vocab=VOCAB, lowercase=True, task=SETTINGS)
    return read_model_directory(path)


@pytest.fixture(scope="module")
def rows():
    generator = np.random.default_rng(0)
    lengths = np.array([23, 3, 11, 17, 5, 8])
    mask = np.arange(23) < lengths[:, None]
    ids = np.where(mask, generator.integers(5, len(VOCAB), mask.shape), 0)
    values = {"input_word_ids": ids, "input_mask": mask, "input_type_ids": np.zeros_like(ids)}
    return {name: array.astype(np.int32) for name, array in values.items()}


@pytest.fixture(scope="module")
def expected(directory, rows):
    """Probabilities of the rows, by logits of the weights before calibration."""
    model = task_from_settings(SETTINGS, "").build_model(directory.config, policy="float32")
    load_all_weights(model, directory)
    logits = np.asarray(model(rows, training=False))
    assert np.abs(softmax(logits, axis=1) - softmax(logits / TEMPERATURE, axis=1)).max() > 0.1
    return softmax(logits / TEMPERATURE, axis=1)


def huggingface(folder, rows, directory):
    """Return logits of the encoder before calibration, by the file's own matrix."""
    model = task_from_settings(SETTINGS, "").build_model(directory.config, policy="float32")
    load_all_weights(model, directory)
    inputs = (rows["input_word_ids"], rows["input_type_ids"], rows["input_mask"])
    pooled = model.encoder(inputs[0], input_type_ids=inputs[1], attention_mask=inputs[2])
    tensors = load_file(folder / "model.safetensors")
    weight, bias = tensors["classifier.weight"], tensors["classifier.bias"]
    return np.asarray(pooled["pooled_output"]) @ weight.T + bias


def ids_model(folder, rows, _):
    signature = tf.saved_model.load(str(folder)).signatures["serving_default"]
    outputs = signature(**{name: tf.constant(values) for name, values in rows.items()})
    return outputs["logits"].numpy()


def onnx(folder, rows, _):
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(folder / "model.onnx")
    return session.run(["logits"], graph_inputs(rows))[0]


def openvino(folder, rows, _):
    library = pytest.importorskip("openvino")
    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    model = library.compile_model(folder / "openvino_model.xml", "CPU", exact)
    return model(graph_inputs(rows))["logits"]


def graph_inputs(rows):
    return {NAMES[name]: values.astype(np.int64) for name, values in rows.items()}


def google(folder, rows, directory):
    checkpoint = tf.train.load_checkpoint(str(folder / "bert_model.ckpt"))
    saved = load_file(directory.path / "model.safetensors")
    for name, theirs in (("weight", "output_weights"), ("bias", "output_bias")):
        divided = saved[f"classifier.{name}"] / TEMPERATURE
        np.testing.assert_allclose(checkpoint.get_tensor(theirs), divided, rtol=1e-6)


def keras_hub(folder, rows, _):
    library = pytest.importorskip("keras_hub")
    classifier = library.models.BertTextClassifier.from_preset(str(folder))
    inputs = {
        "token_ids": rows["input_word_ids"],
        "padding_mask": rows["input_mask"],
        "segment_ids": rows["input_type_ids"],
    }
    return keras.ops.convert_to_numpy(classifier(inputs))


@pytest.mark.slow  # loads other libraries
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # of Keras
@pytest.mark.parametrize(
    ("name", "options", "logits_of"),
    [
        ("huggingface", {}, huggingface),
        ("savedmodel", {}, huggingface),
        ("savedmodel", {"inputs": "ids"}, ids_model),
        ("onnx", {}, onnx),
        ("openvino", {}, openvino),
        ("google-tf1", {}, google),
        ("keras-hub", {}, keras_hub),
    ],
)
def test_the_logits_of_a_format_are_calibrated(
    name, options, logits_of, directory, rows, expected, tmp_path
):
    FORMATS[name].load(**options).write(
        load_trained_model(directory), tmp_path, Console(io.StringIO())
    )
    logits = logits_of(tmp_path, rows, directory)
    if logits is not None:
        np.testing.assert_allclose(softmax(np.asarray(logits), axis=1), expected, atol=1e-4)


@pytest.mark.slow  # traces a graph
@pytest.mark.parametrize(
    ("name", "engine"),
    [("savedmodel", "tensorflow"), ("onnx", "onnxruntime"), ("openvino", "openvino")],
)
def test_every_engine_predicts_what_the_run_does(name, engine, directory, tmp_path):
    FORMATS[name].load().write(load_trained_model(directory), tmp_path, Console(io.StringIO()))
    task = task_from_settings(directory.task, "")
    model = task.build_model(directory.config, policy="float32")
    load_all_weights(model, directory)
    ours = task.host_predictions(model, load_trained_model(directory).tokenizer, {"text": TEXTS})
    rows = load(str(tmp_path), engine=engine).predict(TEXTS)
    for row, label, score in zip(
        rows, ours["predicted_label"], ours["predicted_score"], strict=True
    ):
        assert row["predicted_label"] == label
        assert row["predicted_score"] == pytest.approx(score, abs=3e-3)  # perhaps in bfloat16


def test_the_card_says_so_and_a_second_export_changes_nothing(directory, tmp_path):
    trained = load_trained_model(directory)
    (fact,) = (fact for fact in card_of(trained).facts if "calibrated" in fact)
    assert fact == (
        "probabilities are calibrated in every library: the weights of the head are divided by "
        "2.5, a temperature fitted on evaluation rows"
    )
    FORMATS["huggingface"].load().write(trained, tmp_path, Console(io.StringIO()))
    again = load_trained_model(read_model_directory(tmp_path))
    np.testing.assert_array_equal(again.model.classifier.kernel, trained.model.classifier.kernel)
    assert again.task == trained.task
