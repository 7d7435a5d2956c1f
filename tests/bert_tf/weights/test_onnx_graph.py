"""ONNX graphs with HuggingFace's weights against the outputs of HuggingFace in PyTorch."""

import json
from pathlib import Path

import numpy as np
import pytest

from bert_tf.base.errors import UsageError
from bert_tf.config.bert import BertConfig
from bert_tf.weights.model_directory import read_model_directory

onnx = pytest.importorskip("onnx", reason="onnx is an optional package")

from bert_tf.weights import graph_names  # noqa: E402
from bert_tf.weights.onnx_graph import onnx_model  # noqa: E402  needs onnx

GOLDEN = Path(__file__).parents[2] / "golden" / "models"  # see its README.md
NAMES = sorted(path.parent.name for path in GOLDEN.glob("*/model.safetensors"))
TOLERANCE = 1e-5
OLD_NAMES = {new: old for old, new in graph_names.NAMES.items()}


def graph_of(name):
    directory = read_model_directory(GOLDEN / name)
    (architecture,) = json.loads((directory.path / "config.json").read_text())["architectures"]
    return onnx_model(architecture, directory.config, dict(directory.tensors))


def run_onnxruntime(graph, inputs):
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is an optional package")
    session = runtime.InferenceSession(graph.SerializeToString())
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, inputs), strict=True))


def run_openvino(graph, inputs):
    openvino = pytest.importorskip("openvino", reason="openvino is an optional package")
    core = openvino.Core()
    model = core.read_model(graph.SerializeToString(), b"")
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    found = compiled(inputs)
    return {output.name: found[place] for place, output in enumerate(graph.graph.output)}


@pytest.mark.parametrize("run", [run_onnxruntime, run_openvino])
@pytest.mark.parametrize("name", NAMES)
def test_outputs_equal_huggingface(name, run):
    expected = np.load(GOLDEN / name / "expected.npz")
    graph = graph_of(name)
    inputs = {}
    for value in graph.graph.input:
        array = expected[f"input/{OLD_NAMES.get(value.name, value.name)}"].astype(np.int64)
        inputs[value.name] = array.reshape(-1, array.shape[-1])  # choices are sequences
    found = run(graph, inputs)
    assert found.keys() == {output.name for output in graph.graph.output}
    if "sequence_output" in found:
        if name == "pretraining":
            return  # whose heads are left out
        hidden_states = expected["output/hidden_states"]
        np.testing.assert_allclose(found.pop("sequence_output"), hidden_states[-1], atol=TOLERANCE)
    for output, values in found.items():
        theirs = expected[f"output/{output}"]
        np.testing.assert_allclose(values.reshape(theirs.shape), theirs, atol=TOLERANCE)


@pytest.mark.parametrize("name", NAMES)
def test_graphs_are_valid_and_have_free_axes(name):
    graph = graph_of(name)
    onnx.checker.check_model(graph, full_check=True)
    assert [value.name for value in graph.graph.input][:3] == [
        *("input_ids", "attention_mask", "token_type_ids")  # of HuggingFace's tokenizers
    ]
    for value in graph.graph.input:
        assert value.type.tensor_type.elem_type == onnx.TensorProto.INT64
        assert all(axis.dim_param for axis in value.type.tensor_type.shape.dim)


def test_other_architectures_are_refused():
    with pytest.raises(UsageError, match="no ONNX graph is known for BertLMHeadModel; known are"):
        onnx_model("BertLMHeadModel", BertConfig(vocab_size=9), {})
