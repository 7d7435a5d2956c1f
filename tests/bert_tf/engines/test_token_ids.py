"""Engines whose graph takes token ids: the rows that TensorFlow's engine predicts."""

from __future__ import annotations

import functools
import importlib.util
import io
import itertools
import json
import shutil
import subprocess
import sys

import numpy as np
import onnx
import pytest
import safetensors.numpy
from behavior.engines import check_engine, check_same_values
from behavior.exported_models import KINDS, VARIANTS, exported_kind
from hypothesis import given, settings
from hypothesis import strategies as st

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError
from bert_tf.engines import cuda
from bert_tf.engines.registry import ENGINES, usable_engines
from bert_tf.export.loading import load_trained_model
from bert_tf.export.registry import FORMATS
from bert_tf.tasks.base.prediction_rows import prediction_rows
from bert_tf.tasks.registry import declared_task
from bert_tf.weights.graph_names import NAMES
from bert_tf.weights.model_directory import read_model_directory

TEXTS = [
    "the film was good",
    "",
    "bad",
    "a city of red and blues " * 9,
    "Straße 東京",
    "is it? it is",
]
REPLIES = ["it is", "", "the city", "very good " * 20, "", "it was"]
MASKED = [
    "the [MASK] was good",
    "",
    "[MASK][MASK] it \t[MASK]",
    "a city of red and blues " * 9 + '[MASK] is \\ "good"',
    "Straße [MASK] 東京",
    "no mask",
]
CHOICES = [
    ["it is", "the film"],
    [],
    ["bad", "very " * 30, 'good, "red"', "a"],
    ["a city of red and blues " * 9, "the city"],
    ["Straße 東京", "blue", ""],
    ["it was", "is it"],
]
COLUMN_VALUES = {
    "text": TEXTS,
    "text_pair": REPLIES,
    "question": REPLIES,
    "context": TEXTS,
    "choices": CHOICES,
}
TASK_KINDS = [*(kind for kind, task in KINDS.items() if task), *VARIANTS]
IDS_ENGINES = [
    name for name, entry in ENGINES.items() if entry.takes_token_ids and not entry.is_of_gpus
]


@pytest.fixture(scope="session")
def folder_of(tmp_path_factory):
    """Return the folder of a SavedModel of a small model with random weights, by its kind."""
    return functools.partial(exported_kind, tmp_path_factory)


@pytest.fixture(scope="module", params=TASK_KINDS)
def exported(request, folder_of):
    return folder_of(request.param)


@pytest.fixture(scope="module")
def graph(exported):
    return ENGINES["tensorflow"].load(exported)


def columns_of(engine, path):
    values = dict(COLUMN_VALUES)
    if declared(path).name == "fill-mask":
        values["text"] = MASKED
    return {name: values[name] for name in engine.input_names}


def declared(path):
    return declared_task(json.loads((path / "task.json").read_text()), "model")


def entry_of(name):
    entry = ENGINES[name]
    for package in entry.packages:
        pytest.importorskip(package, reason="an optional package")
    return entry


def check_same_rows(found, expected, path):
    """Texts, places and labels are equal, numbers up to rounding."""
    assert found.keys() == expected.keys()
    fields = declared(path).predictions
    for ours, theirs in zip(
        prediction_rows(fields, found), prediction_rows(fields, expected), strict=True
    ):
        check_same_values(ours, theirs)
    for output, values in expected.items():
        if values.dtype != object:
            np.testing.assert_allclose(found[output], values, rtol=1e-5, atol=1e-5)


def each_kind_once(shift=0):
    """Parametrize a test by every kind of model, and engines in turn.

    Engines differ in the encoder and kinds in the layers around it, so pairs of both suffice.
    """
    names = IDS_ENGINES[shift:] + IDS_ENGINES[:shift]
    pairs = [*zip(TASK_KINDS, itertools.cycle(names), strict=False)]
    # The scope has pytest run all tests of a kind together, so that its graph is loaded once.
    return pytest.mark.parametrize(
        ("exported", "name"), pairs, indirect=["exported"], scope="module"
    )


@pytest.mark.slow  # exports models
@each_kind_once()
def test_rows_are_those_of_the_saved_model(exported, graph, name):
    entry = entry_of(name)
    assert entry in usable_engines("auto", exported)
    engine = entry.load(exported)
    assert sorted(engine.input_names) == sorted(graph.input_names)
    columns = columns_of(engine, exported)
    check_same_rows(engine.predict(columns), graph.predict(columns), exported)


@pytest.mark.slow  # exports models, which XLA compiles
def test_rows_of_the_engine_for_gpus_are_those_of_the_saved_model(exported, graph):
    """Compiled and filled up as there, on any device."""
    engine = cuda.load(exported, threads=None, precision="float32")
    columns = columns_of(engine, exported)
    check_same_rows(engine.predict(columns), graph.predict(columns), exported)


WORDS = [
    *("the", "a", "it", "is", "was", "film", "city", "good", "bad", "very", "red", "and", "s"),
    "[MASK]",
    "[MASK]",
    ".",
    "? ",
    "! A",
    "東京",
    "é",
    "\u0301",
    "\u200b",
    "\0",
]
BLANKS = ["", " ", "  ", "\n", "\n\n", "\u00a0"]
random_texts = st.lists(
    st.tuples(st.sampled_from(WORDS), st.sampled_from(BLANKS)), max_size=40
).map(lambda parts: "".join(word + blank for word, blank in parts))


@pytest.mark.slow  # exports models
def test_any_rows_are_those_of_the_saved_model(exported, graph):
    installed = [name for name in IDS_ENGINES if ENGINES[name].is_installed()]
    if not installed:
        pytest.skip("no optional package")
    engine = ENGINES[installed[0]].load(exported)

    @given(st.data())
    @settings(deadline=None, max_examples=10)
    def check(data):
        rows = data.draw(st.integers(1, 8))
        columns = {
            name: data.draw(
                st.lists(
                    st.lists(random_texts, max_size=4) if name == "choices" else random_texts,
                    min_size=rows,
                    max_size=rows,
                )
            )
            for name in engine.input_names
        }
        check_same_rows(engine.predict(columns), graph.predict(columns), exported)

    check()


@pytest.mark.slow  # exports models
@each_kind_once(shift=1)
def test_engine(exported, name, tmp_path):
    entry = entry_of(name)
    diverged = tmp_path / "diverged"
    diverged.mkdir()
    for file in exported.iterdir():
        if file.is_file() and file.name != "SHA256SUMS":
            (diverged / file.name).write_bytes(file.read_bytes())
    weights = safetensors.numpy.load_file(diverged / "model.safetensors")
    shift = "bert.embeddings.LayerNorm.bias"
    weights[shift] = np.full_like(weights[shift], np.nan)
    safetensors.numpy.save_file(weights, diverged / "model.safetensors")
    engine = entry.load(exported)
    check_engine(engine, columns_of(engine, exported), diverged=entry.load(diverged))


@pytest.mark.slow  # exports models and starts a process
@pytest.mark.parametrize("name", IDS_ENGINES)
def test_no_tensorflow_is_imported_and_onnx_only_to_make_a_graph(folder_of, name):
    entry = entry_of(name)
    code = (
        f"import json, sys, {entry.module}\n"
        "assert 'onnx' not in sys.modules\n"
        "from bert_tf.engines.registry import resolve_engine\n"
        "values = json.loads(sys.argv[1])\n"
        "heavy = {'tensorflow', 'keras', 'apache_beam', 'numba', 'scipy'}\n"
        "for path in sys.argv[2:]:\n"
        f"    engine = resolve_engine({name!r}, path).load(path)\n"
        "    outputs = engine.predict({name: values[name] for name in engine.input_names})\n"
        "    assert all(len(values) == 6 for values in outputs.values())\n"
        "    assert not heavy & {*sys.modules}, (path, heavy & {*sys.modules})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(COLUMN_VALUES), *map(folder_of, TASK_KINDS)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow  # starts a process
@pytest.mark.parametrize("name", IDS_ENGINES)
def test_signals_are_handled_when_models_are_gone(folders, name):
    """Models go in any order; a handler that a library has set up may not go with one of them."""
    entry_of(name)
    code = (
        "import faulthandler, gc, os, signal, sys\n"
        "from bert_tf.engines.registry import resolve_engine\n"
        "faulthandler.enable()\n"
        "load = resolve_engine(sys.argv[1], sys.argv[2]).load\n"
        "models = [load(sys.argv[2]) for _ in range(3)]\n"
        "while models:\n"
        "    models.pop(0).predict({'text': ['good', 'bad']})\n"
        "    gc.collect()\n"
        "signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(7))\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, name, folders["model.safetensors"]],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 7, done.stderr


GRAPHS = {
    "openvino": ("openvino_model.xml", "model.onnx"),
    "onnxruntime": ("model.onnx",),
}


@pytest.fixture(scope="module")
def folders(folder_of, tmp_path_factory):
    """Return a model with a graph, by the file that it is in.

    Without one, by that of the weights.
    """
    whole = tmp_path_factory.mktemp("damage") / "model"
    shutil.copytree(folder_of("windows"), whole)
    (whole / "SHA256SUMS").unlink(missing_ok=True)  # what else notices damage
    found = {"model.safetensors": whole}
    for name, module in (("model.onnx", "onnx"), ("openvino_model.xml", "openvino")):
        if importlib.util.find_spec(module) is not None:
            found[name] = shutil.copytree(whole, whole.with_name(module))
            model = load_trained_model(read_model_directory(whole))
            FORMATS[module].load().write(model, found[name], Console(io.StringIO()))
    return found


DAMAGE = {
    "cut": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "garbled": lambda data: bytes(byte ^ 0x55 for byte in data),
}


@pytest.mark.slow  # exports models
@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize(
    ("name", "file"),
    [(name, file) for name in IDS_ENGINES for file in (*GRAPHS[name], "model.safetensors")],
)
def test_a_damaged_graph_is_named_with_what_to_do(folders, tmp_path, name, file, damage):
    entry = entry_of(name)
    folder = shutil.copytree(folders[file], tmp_path / "model")
    (folder / "SHA256SUMS").unlink(missing_ok=True)
    (folder / file).write_bytes(DAMAGE[damage]((folder / file).read_bytes()))
    with pytest.raises(InputError, match=rf"{file}: damaged or not .*\(.+\)") as raised:
        entry.load(folder)
    assert "\n" not in str(raised.value)


@pytest.mark.slow  # exports a model
def test_a_graph_that_loads_but_cannot_run_is_named(folders, tmp_path):
    folder = shutil.copytree(folders["model.onnx"], tmp_path / "model")
    (folder / "SHA256SUMS").unlink(missing_ok=True)
    graph = onnx.load(folder / "model.onnx")
    gathers = [node for node in graph.graph.node if node.op_type == "Gather"]
    table = next(t for t in graph.graph.initializer if t.name == gathers[0].input[0])
    table.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(table)[:1], table.name))
    onnx.save(graph, folder / "model.onnx")
    engine = entry_of("onnxruntime").load(folder)
    with pytest.raises(InputError, match=r"model: damaged or not of bert-pipeline \(.+\)"):
        engine.predict({name: ["w1 w2"] for name in engine.input_names})


@pytest.mark.slow  # exports a model
@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_graphs_with_the_input_names_of_before_are_read(folders, tmp_path, name):
    folder = shutil.copytree(folders["model.onnx"], tmp_path / "model")
    (folder / "SHA256SUMS").unlink(missing_ok=True)
    graph = onnx.load(folder / "model.onnx")
    old = {new: old for old, new in NAMES.items()}
    for value in graph.graph.input:
        value.name = old.get(value.name, value.name)
    for node in graph.graph.node:
        node.input[:] = [old.get(each, each) for each in node.input]
    onnx.save(graph, folder / "model.onnx")
    engines = [entry_of(name).load(each) for each in (folder, folders["model.onnx"])]
    rows = {each: ["w1 w2", "w3"] for each in engines[0].input_names}
    before, now = (engine.predict(rows) for engine in engines)
    for key, values in now.items():
        np.testing.assert_array_equal(before[key], values)


@pytest.mark.slow  # exports models
def test_a_graph_of_other_rows_is_named(folders):
    engine = entry_of("onnxruntime").load(folders["model.onnx"])
    run = engine._run
    engine._run = lambda inputs: {name: values[:-1] for name, values in run(inputs).items()}
    with pytest.raises(InputError, match="not of bert-pipeline .its outputs have another number"):
        engine.predict({name: ["w1 w2"] for name in engine.input_names})


@pytest.mark.slow  # exports models
def test_the_weights_of_a_graph_in_openvino_s_format_are_missing_or_cut(folders, tmp_path):
    entry = entry_of("openvino")
    folder = shutil.copytree(folders["openvino_model.xml"], tmp_path / "model")
    (folder / "SHA256SUMS").unlink(missing_ok=True)
    weights = folder / "openvino_model.bin"
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(InputError, match=r"openvino_model\.xml: damaged or not of bert-pipeline"):
        entry.load(folder)
    weights.unlink()
    with pytest.raises(InputError, match=r"openvino_model\.xml: damaged or not of bert-pipeline"):
        entry.load(folder)


@pytest.mark.slow  # exports a model
@pytest.mark.parametrize("name", IDS_ENGINES)
def test_a_graph_of_another_tool_and_weights_without_a_tensor_are_refused(folders, tmp_path, name):
    entry = entry_of(name)
    folder = shutil.copytree(folders["model.safetensors"], tmp_path / "model")
    (folder / "SHA256SUMS").unlink(missing_ok=True)
    weights = safetensors.numpy.load_file(folder / "model.safetensors")
    del weights["classifier.weight"]
    safetensors.numpy.save_file(weights, folder / "model.safetensors")
    with pytest.raises(InputError, match=r"has no tensor 'classifier\.weight', which config"):
        entry.load(folder)

    onnx = pytest.importorskip("onnx")
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Identity", ["x"], ["y"])],
        "other",
        [value("x", onnx.TensorProto.INT64, ["n"])],
        [value("y", onnx.TensorProto.INT64, ["n"])],
    )
    other = onnx.helper.make_model(
        graph, ir_version=9, opset_imports=[onnx.helper.make_opsetid("", 20)]
    )
    (folder / "model.onnx").write_bytes(other.SerializeToString())
    with pytest.raises(InputError, match=r"model\.onnx: .* \(its inputs are x\); export"):
        entry.load(folder)


def test_weights_beyond_what_a_graph_holds_are_a_fault_known_before_they_are_read(
    tmp_path, monkeypatch
):
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)  # a fault of its own
    token_ids = pytest.importorskip("bert_tf.engines.token_ids", exc_type=ImportError)
    for file in ENGINES["onnxruntime"].needed_files:
        (tmp_path / file).touch()
    (tmp_path / "task.json").write_text(json.dumps(VARIANTS["windows"]))
    (tmp_path / "model.safetensors").write_bytes(bytes(2000))
    assert ENGINES["onnxruntime"].fault(tmp_path) is None
    monkeypatch.setattr(token_ids, "MOST_BYTES", 1999)
    expected = "cannot hold the weights in a graph: they take 2,000 bytes, and it holds 1,999 at"
    assert ENGINES["onnxruntime"].fault(tmp_path).startswith(expected)
    (tmp_path / "openvino_model.xml").touch()
    assert ENGINES["openvino"].fault(tmp_path) is None
    assert ENGINES["onnxruntime"].fault(tmp_path) is not None
