"""A notebook under a real kernel: every step, without pandas, then with a version Beam cannot use.

KerasHub cannot be imported there either: only its presets need it.
"""

import os
import re

import nbformat
import pytest
from nbclient import NotebookClient

from bert_tf.base.noise_filter import is_noise

pytestmark = pytest.mark.slow

# Python's logging as `basicConfig` writes it, and C++ libraries as absl does.
FOREIGN = re.compile(r"(?:[A-Z]+:[\w.]+:|[IWEF]\d{4} |\d{4}-\d\d-\d\d [\d:.]+: )")
SETTINGS = """
import json
from pathlib import Path

from pipeline import embed, export, finetune, preprocess, score, train, vocab

words = "the lamp was not on when we came home so my friend lit a small candle".split()
texts = [" ".join(words[n % 7 : n % 7 + 5]).capitalize() + "." for n in range(90)]
documents = ["\\n".join(texts[start : start + 6]) for start in range(0, 90, 6)]
Path("corpus.txt").write_text("\\n\\n".join(documents))
rows = [f"{text},{'night' if 'lamp' in text else 'day'}" for text in texts[:40]]
Path("rows.csv").write_text("\\n".join(["text,label", *rows]))
sizes = dict(
    hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
    max_position_embeddings=32,
)
"""
PANDAS_3 = """
import os, sys
sys.path.append(os.environ["TEST_PANDAS"])
"""
CONFIG = """
size = len(Path("vocab.txt").read_text().split())
Path("config.json").write_text(json.dumps({**sizes, "vocab_size": size}))
"""
STEPS = {
    "vocab": 'vocab(input=["corpus.txt"], output="vocab.txt", vocab_size=60)',
    "preprocess": 'preprocess(input=["corpus.txt"], vocab="vocab.txt", output="examples",'
    " max_seq_length=16, dupe_factor=1)",
    "train": 'train(data="examples", model_config="config.json", output="bert", steps=2,'
    " batch_size=4)",
    "finetune": 'finetune("classification", train="rows.csv", init="bert", output="run", epochs=1,'
    " max_seq_length=16)",
    "export": 'export(run="run", output="model")',
    "score": 'score(model="model", input=["rows.csv"], output="scored.jsonl", engine="tensorflow")',
    "embed": 'embed(model="bert", input=["rows.csv"], output="vectors.npy")',
}
LOAD = """
from bert_tf import load
load("model", engine="tensorflow").predict(["The lamp was not on."])[0]["predicted_label"]
"""
MODULES = """
sorted({"keras_hub", "apache_beam.runners.interactive.interactive_environment"} & {*sys.modules})
"""
ASKED_AGAIN = """
from apache_beam.utils.interactive_utils import is_in_notebook
is_in_notebook()
"""
REFUSED = 'finetune("classification", train="row.csv", init="bert", output="other")'


def code_cells():
    """Return the source of each cell by a name."""
    cells = {"settings": SETTINGS}
    for name, call in STEPS.items():
        cells[name] = f"_ = {call}"
        if name == "vocab":
            cells |= {"pandas 3": PANDAS_3, "config": CONFIG}
    return {
        **cells,
        "load": LOAD,
        "modules": MODULES,
        "asked again": ASKED_AGAIN,
        "presets": 'export(run="run", output="preset", format="keras-hub")',
        "refused": REFUSED,
    }


# Has every name that PyArrow looks up, but not `DataFrame.first`, which pandas 3 removed and Beam
# looks up as it imports its dataframes.
FAKE_PANDAS_3 = """
__version__ = "3.0.0"

class Anything(type):
    def __getattr__(cls, name):
        if name == "first" or name.startswith("__"):
            raise AttributeError(name)
        return Anything(name, (), {})

def __getattr__(name):
    return getattr(Anything("pandas", (), {}), name)
"""
BROKEN_KERAS_HUB = "raise ImportError(\"cannot import name 'ops' from 'keras'\")"


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """Return the outputs of each cell by its name."""
    folder = tmp_path_factory.mktemp("notebook")
    for package, content in {"pandas": FAKE_PANDAS_3, "keras_hub": BROKEN_KERAS_HUB}.items():
        path = folder / f"with_{package}" / package
        path.mkdir(parents=True)
        (path / "__init__.py").write_text(content)
    cells = code_cells()
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source.strip()) for source in cells.values()]
    )
    path = os.pathsep.join(
        [str(folder / "with_keras_hub"), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    environment = {**os.environ, "PYTHONPATH": path, "TEST_PANDAS": str(folder / "with_pandas")}
    environment.pop("TF_CPP_MIN_LOG_LEVEL", None)  # of the tests
    environment.pop("GRPC_VERBOSITY", None)
    client = NotebookClient(
        notebook, timeout=600, kernel_name="python3", allow_errors=True,
        resources={"metadata": {"path": str(folder)}},
    )  # fmt: skip
    client.execute(env=environment)
    return {name: cell.outputs for name, cell in zip(cells, notebook.cells, strict=True)}


def printed(cell):
    return "".join(output.text for output in cell if output.output_type == "stream")


def failures(cell):
    return [output for output in cell if output.output_type == "error"]


def result(cell):
    """Return the value of the last expression as it is shown."""
    return next(o.data["text/plain"] for o in cell if o.output_type == "execute_result")


@pytest.mark.parametrize("name", [*STEPS, "load"])
def test_every_step_runs_and_prints_its_own_lines_only(outputs, name):
    assert failures(outputs[name]) == []
    lines = printed(outputs[name]).splitlines()
    assert [line for line in lines if FOREIGN.match(line) or is_noise(line.encode())] == []
    if name != "load":
        assert any("manifest" in line or "next: " in line for line in lines), lines


def test_neither_the_dataframes_of_beam_nor_keras_hub_are_imported(outputs):
    assert result(outputs["modules"]) == "[]"


def test_a_command_that_needs_keras_hub_says_so_in_a_line(outputs):
    (failure,) = failures(outputs["presets"])
    (line,) = failure.traceback
    assert re.match(r"UsageError: KerasHub [\d.]+ cannot be imported beside TensorFlow", line)
    assert "pip install" in line and "\n" not in line


def test_beam_asks_again_for_pipelines_of_the_user(outputs):
    assert result(outputs["asked again"]) == "True"


def test_errors_for_the_user_are_a_line(outputs):
    (failure,) = failures(outputs["refused"])
    assert failure.traceback == [
        "ConfigError: --train row.csv: no such file or folder; did you mean 'rows.csv'?"
    ]
