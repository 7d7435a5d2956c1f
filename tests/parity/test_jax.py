"""Our models on Keras' JAX backend against the same models on TensorFlow.

jax_outputs.py runs in a process of its own, in which TensorFlow cannot be imported: `make parity`
names an interpreter with jax, otherwise this one is taken if it has it.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from parity_models import MODELS

from bert_tf.models.encoder import BertEncoder
from bert_tf.models.heads import BertPretrainingModel, BertQuestionAnswerer
from bert_tf.weights.model_directory import load_weights, read_model_directory
from bert_tf.weights.tensor_files import FolderTensors

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "models"
SCRIPT = Path(__file__).with_name("jax_outputs.py")
SEARCH_PATH = os.pathsep.join((str(ROOT), str(SCRIPT.parent)))
TOLERANCE = 1e-5
# Runs a script as if TensorFlow were not installed.
WITHOUT_TENSORFLOW = (
    "import runpy, sys; sys.modules.update(tensorflow=None, tensorflow_text=None); "
    "del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"
)


def jax_python() -> str | None:
    """Return an interpreter with jax and keras."""
    here = sys.executable if importlib.util.find_spec("jax") else None
    return os.environ.get("BERT_JAX_PYTHON", here)


@pytest.fixture(scope="module")
def from_jax(tmp_path_factory) -> Path:
    """Return the folder that jax_outputs.py filled."""
    python = jax_python()
    if python is None:
        pytest.skip("jax is not installed and BERT_JAX_PYTHON not set: `make parity` has both")
    output = tmp_path_factory.mktemp("jax")
    done = subprocess.run(
        [python, "-c", WITHOUT_TENSORFLOW, str(SCRIPT), str(GOLDEN), str(output)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": SEARCH_PATH, "KERAS_BACKEND": "jax"},
    )
    assert done.returncode == 0, done.stderr
    return output


def named_outputs(model, inputs):
    if isinstance(model, BertEncoder):
        outputs = model(
            inputs["input_word_ids"],
            input_type_ids=inputs["input_type_ids"],
            attention_mask=inputs["input_mask"],
            output_hidden_states=True,
        )
        hidden_states = tf.stack(outputs["hidden_states"])
        return {"hidden_states": hidden_states, "pooled_output": outputs["pooled_output"]}
    outputs = model(inputs)
    if isinstance(model, BertPretrainingModel):
        return outputs
    if isinstance(model, BertQuestionAnswerer):
        return dict(zip(("start_logits", "end_logits"), outputs, strict=True))
    return {"logits": outputs}


@pytest.mark.parametrize("name", MODELS)
def test_outputs_and_gradients_equal_tensorflows(from_jax, name):
    directory = read_model_directory(GOLDEN / name)
    model = MODELS[name](directory.config)
    model.build_weights()
    load_weights(model, directory)
    expected = np.load(GOLDEN / name / "expected.npz")
    inputs = {
        key.removeprefix("input/"): expected[key]
        for key in expected.files
        if key.startswith("input/")
    }
    theirs = np.load(from_jax / f"{name}.npz")
    with tf.GradientTape() as tape:
        outputs = named_outputs(model, inputs)
        loss = tf.add_n([tf.reduce_sum(value**2) for value in outputs.values()])
    for key, value in outputs.items():
        np.testing.assert_allclose(theirs[f"output/{key}"], value, rtol=0, atol=TOLERANCE)
    variables = model.trainable_variables
    gradients = tape.gradient(loss, [variable.value for variable in variables])
    for variable, gradient in zip(variables, gradients, strict=True):
        ours = tf.convert_to_tensor(gradient).numpy()
        value = theirs[f"gradient/{variable.path.partition('/')[2]}"]
        limit = TOLERANCE * max(1.0, np.abs(ours).max())
        np.testing.assert_allclose(value, ours, rtol=0, atol=limit, err_msg=variable.path)


@pytest.mark.parametrize("name", MODELS)
def test_jax_writes_the_weights_that_it_read(from_jax, name):
    written, source = FolderTensors(from_jax / f"{name}-model"), FolderTensors(GOLDEN / name)
    assert written.keys() == source.keys()
    for key, value in source.items():
        np.testing.assert_array_equal(written[key], value)


@pytest.mark.parametrize("name", MODELS)
def test_jax_refuses_dropout(from_jax, name):
    refusal = str(np.load(from_jax / f"{name}.npz")["refusal"])
    assert "dropout needs Keras' TensorFlow backend, got 'jax'" in refusal  # Keras adds its own
