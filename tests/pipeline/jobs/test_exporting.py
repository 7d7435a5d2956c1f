"""The export job: equal models are equal files, and each of them is vouched for."""

import csv
import dataclasses
import functools
import io
import json
import shutil
from pathlib import Path

import keras
import numpy as np
import pytest
from arrays_format import ARRAYS
from behavior.small_models import write_classifier
from tensorflow.core.protobuf.fingerprint_pb2 import FingerprintDef

from bert_tf.base.checksums import CARD, SUMS, read_sums
from bert_tf.base.console import Console
from bert_tf.base.errors import BertPipelineError, InputError, UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import ExportConfig
from bert_tf.engines.probes import PROBES
from bert_tf.engines.registry import ENGINES
from bert_tf.export import saved_model
from bert_tf.export.registry import FORMATS, recognize_format
from bert_tf.serving.signatures import MOST_MASKS
from bert_tf.tasks.base.served_task import PretrainedTask
from bert_tf.tasks.fill_mask.declaration import FillMaskConfig
from bert_tf.weights.import_weights import read_source
from pipeline.cli.main import main
from pipeline.jobs import exporting
from pipeline.outputs.job_spec import RunOptions
from pipeline.outputs.manifest import read_manifest
from pipeline.report.artifact import describe_artifact

pytestmark = pytest.mark.slow  # traces and writes SavedModels

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijk"]
TASK = {
    "task": "classification",
    "labels": ["no", "yes"],
    "columns": {"text": "text", "text_pair": None, "label": "label"},
    "max_seq_length": 8,
}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("trained") / "model"
    return write_classifier(path, vocab=VOCAB, task=TASK, seed=3)


@pytest.fixture(scope="module")
def export(model, tmp_path_factory):
    def make(kind, **values):
        output = tmp_path_factory.mktemp(kind) / "exported"
        given = {"run": str(model), "output": str(output), "format": kind, **values}
        config = build_section(ExportConfig, given)
        keras.utils.clear_session()  # Keras numbers the layers of a process
        exporting.run(config, RunOptions(console=Console(io.StringIO())))
        return output

    return make


@pytest.fixture(scope="module")
def exported(export):
    """Return the first export to a format, which no test may change."""
    return functools.cache(export)


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("kind", ["huggingface", "onnx", "openvino", "keras-hub", "google-tf1"])
def test_a_model_is_exported_to_the_same_bytes_twice(exported, export, kind):
    for package in FORMATS[kind].packages:
        pytest.importorskip(package, reason="an optional package")
    one, two = exported(kind), export(kind)
    files = {str(path.relative_to(one)) for path in one.rglob("*") if path.is_file()}
    of_the_job = {"config.yaml", "manifest.json"}
    assert read_sums(one).keys() == files - of_the_job - {SUMS, CARD}
    different = {name for name in files if (one / name).read_bytes() != (two / name).read_bytes()}
    assert different == of_the_job
    assert recognize_format(one).name == kind


def test_the_fingerprint_of_a_saved_model_follows_from_its_content(exported, tmp_path):
    """A process numbers the functions it traces, so equal graphs come of equal processes alone."""
    path = Path(shutil.copy(exported("savedmodel") / "fingerprint.pb", tmp_path))
    before = FingerprintDef.FromString(path.read_bytes())
    again = FingerprintDef()
    again.CopyFrom(before)
    again.uuid = "1"
    path.write_bytes(again.SerializeToString())
    saved_model.identify_by_content(path)
    assert FingerprintDef.FromString(path.read_bytes()) == before
    again.checkpoint_hash += 1
    path.write_bytes(again.SerializeToString())
    saved_model.identify_by_content(path)
    assert FingerprintDef.FromString(path.read_bytes()).uuid != before.uuid


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize(
    ("kind", "load"),
    [
        ("savedmodel", ENGINES["tensorflow"].load),
        ("keras-hub", read_source),
        ("google-tf1", read_source),
    ],
)
def test_no_flipped_bit_of_an_exported_model_goes_unnoticed(exported, kind, load, tmp_path):
    exported = shutil.copytree(exported(kind), tmp_path / "copy")
    generator = np.random.default_rng(1)
    ours = {"saved_model.pb", "fingerprint.pb", "task.json"}
    for name in read_sums(exported):
        if kind == "savedmodel" and name not in ours and not name.startswith("variables/"):
            continue
        content = (exported / name).read_bytes()
        for bit in generator.choice(8 * len(content), 10):
            flipped = bytearray(content)
            flipped[bit // 8] ^= 1 << bit % 8
            (exported / name).write_bytes(flipped)
            with pytest.raises(InputError, match=f"{name}: has changed since it was written"):
                load(exported)
        (exported / name).write_bytes(content)
    load(exported)


def test_a_registered_format_is_exported_described_and_recognized(export, monkeypatch):
    monkeypatch.setitem(FORMATS, ARRAYS.name, ARRAYS)
    output = export("arrays")
    manifest = read_manifest(output)
    assert manifest["format"] == "arrays"
    assert manifest["next"] is None, "no engine runs it"
    assert "arrays.npz" in read_sums(output)
    card = (output / "README.md").read_text()
    assert "## Loading\nWith NumPy (AutoModelForSequenceClassification): `numpy.load`.\n" in card
    assert "## What differs\n- arrays have no tokenizer\n" in card
    for name in ("manifest.json", "config.yaml"):
        (output / name).unlink()
    headline, *facts = describe_artifact(str(output), samples=1)
    assert headline == f"{output}: model directory (folder of NumPy arrays) without a manifest"
    assert "arrays.json: hidden_size = 8" in facts


def test_a_format_whose_package_is_missing_is_refused_before_anything_is_written(
    model, tmp_path, monkeypatch
):
    entry = dataclasses.replace(FORMATS["onnx"], packages=("no_such_package",))
    monkeypatch.setitem(FORMATS, "onnx", entry)
    output = tmp_path / "out"
    config = build_section(
        ExportConfig, {"run": str(model), "output": str(output), "format": "onnx"}
    )
    with pytest.raises(UsageError, match=r"--format onnx: needs no_such_package, .*pip install"):
        exporting.run(config, RunOptions(console=Console(io.StringIO())))
    assert not output.exists()


def test_a_pretrained_model_is_exported_for_a_task_and_scores(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    model = Path(__file__).parents[2] / "golden" / "fill_mask"
    rows = '"Rome, the [MASK] of Italy.",1\nno mask,2\n"walk[MASK] of [MASK] ""the""",3\n'
    many = "[MASK] " * (MOST_MASKS + 1)
    (tmp_path / "new.csv").write_text(f"body,id\n{rows}{many},4\n")

    def run(line):
        with pytest.raises(SystemExit) as exited:
            main(line.split())
        assert exited.value.code == 0

    run(f"export --run {model} --output filler --task fill-mask --top-k 2")
    run("score --model filler --input new.csv --output scored.csv --text-column body")
    run("score --model filler --input new.csv --output scored.jsonl --text-column body")

    card = (tmp_path / "filler" / "README.md").read_text()
    assert "\n---\n\n# Masked language model\n" in card
    assert "- the 2 most likely tokens for each mask, with probabilities over the whole" in card
    manifest = read_manifest(tmp_path / "scored.csv")
    counts = ("rows_in", "rows_out", "rows_rejected")
    assert [manifest["counts"][name] for name in counts] == [4, 3, 1]
    assert manifest["counts"]["masks_lost"] == 1
    assert f"1 mask not predicted: only the first {MOST_MASKS} of a text" in capsys.readouterr().err
    (rejected,) = (tmp_path / "scored.csv.rejects.jsonl").read_text().splitlines()
    assert json.loads(rejected)["reason"] == "text has no [MASK]"
    assert json.loads(rejected)["line"] == 3
    csv.field_size_limit(1 << 20)  # of characters: the candidates of a row are one cell
    with (tmp_path / "scored.csv").open(newline="") as stream:
        cells = list(csv.DictReader(stream))
    objects = [json.loads(line) for line in (tmp_path / "scored.jsonl").read_text().splitlines()]
    for row, value in zip(cells, objects, strict=True):
        assert row["predicted_text"] == value["predicted_text"]
        assert json.loads(row["predicted_tokens"]) == value["predicted_tokens"]
    assert [len(value["predicted_tokens"]) for value in objects] == [1, 2, MOST_MASKS + 1]
    assert "[MASK]" not in objects[1]["predicted_text"]


def test_a_graph_that_scores_otherwise_is_not_exported(tmp_path, monkeypatch):
    def double(task, model, tokenizer, texts):
        outputs = PretrainedTask.reference_outputs(task, model, tokenizer, texts)
        return {name: 2 * values for name, values in outputs.items()}

    monkeypatch.setattr("bert_tf.tasks.fill_mask.task.FillMaskTask.reference_outputs", double)
    values = {
        "run": str(Path(__file__).parents[2] / "golden" / "fill_mask"),
        "output": str(tmp_path / "out"),
        "task": "fill-mask",
    }
    with pytest.raises(BertPipelineError, match="the SavedModel's results differ by"):
        exporting.run(
            build_section(FillMaskConfig, values), RunOptions(console=Console(io.StringIO()))
        )


def test_a_model_is_laid_out_for_tensorflow_serving(export, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    output = export("savedmodel", layout="serving")
    shutil.copytree(output, "served")
    of_version = {str(path.relative_to(output / "1")) for path in (output / "1").rglob("*.*")}
    names = {"config.json", "fingerprint.pb", "saved_model.pb", "task.json", "vocab.txt", PROBES}
    variables = {"variables/variables.index", "variables/variables.data-00000-of-00001"}
    assert of_version == names | variables | {"tokenizer_config.json"}
    assert read_sums(output / "1").keys() == of_version
    assert {path.name for path in output.iterdir()} == {"1", CARD, "config.yaml", "manifest.json"}
    manifest = read_manifest(output)
    (note,) = manifest["notes"]
    assert "FastBertNormalize and FastWordpieceTokenizeWithOffsets; TensorFlow Serving 2.12" in note
    assert manifest["next"].startswith("bert-pipeline score ")
    card = (output / CARD).read_text()
    assert "library_name" not in card
    assert 'tf.saved_model.load("THIS_FOLDER/1")' in card and note in card
    assert """:predict -d '{"instances": [{"text": "some text"}]}'""" in card
    assert "task.json: task = classification" in describe_artifact(str(output), samples=1)

    Path("new.csv").write_text("text,label\na b,no\nc,yes\n")
    for name in ("served", "served/1"):
        for line in (
            f"score --model {name} --input new.csv --output {name[-1]}.csv",
            f"evaluate --model {name} --data new.csv --output {name[-1]}",
        ):
            with pytest.raises(SystemExit) as exited:
                main(line.split())
            assert exited.value.code == 0
    assert Path("d.csv").read_bytes() == Path("1.csv").read_bytes()
    Path("served/manifest.json").unlink()
    with pytest.raises(SystemExit) as exited:
        main(["score", "--model", "served", "--input", "new.csv", "--output", "again.csv"])
    assert exited.value.code == 2
    assert "served: is not finished" in capsys.readouterr().err


def test_a_model_of_ids_is_not_for_texts(export, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    output = export("savedmodel", inputs="ids")
    manifest = read_manifest(output)
    assert manifest["notes"] == [] and manifest["next"] is None
    assert (output / "model.safetensors").is_file()
    Path("new.csv").write_text("text\na b\n")
    with pytest.raises(SystemExit) as exited:
        main(f"score --engine tensorflow --model {output} --input new.csv --output o.csv".split())
    assert exited.value.code == 2
    assert "takes ids of tokens, not texts" in capsys.readouterr().err
