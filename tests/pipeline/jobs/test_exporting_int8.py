"""Exports with a graph of 8-bit integers: calibrated, compared, described and scored with."""

import contextlib
import csv
import io
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from behavior.engines import check_engine
from behavior.small_models import write_classifier, write_encoder

from bert_tf.base.checksums import CARD, read_sums
from bert_tf.base.console import Console
from bert_tf.base.errors import ConfigError, InputError, UsageError
from bert_tf.base.processor import processor_flags
from bert_tf.config.section import build_section
from bert_tf.config.sections import EvaluateConfig, ExportConfig
from bert_tf.engines.registry import ENGINES
from bert_tf.engines.token_ids import TokenIdsEngine
from bert_tf.export.int8 import Int8Comparison
from pipeline.cli.main import main
from pipeline.jobs import evaluation, exporting
from pipeline.outputs.job_spec import RunOptions
from pipeline.outputs.manifest import read_manifest

pytestmark = [
    pytest.mark.slow,  # calibrates and writes models
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning"),
]

WORDS = [f"{first}{second}" for first in "bcdfgh" for second in "aeiou"]
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
TASK = {
    "task": "classification",
    "labels": ["no", "yes"],
    "columns": {"text": "text", "text_pair": None, "label": "label"},
    "max_seq_length": 24,
}
FORMATS = {
    "openvino": ("openvino", "openvino_model_int8.xml"),
    "onnx": ("onnxruntime", "model_int8.onnx"),
}
QUANTIZERS = {"openvino": "nncf", "onnx": "onnxruntime"}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("trained") / "model"
    return write_classifier(
        path,
        vocab=VOCAB,
        task=TASK,
        seed=3,
        hidden_size=32,
        num_hidden_layers=2,
        intermediate_size=64,
        max_position_embeddings=32,
        initializer_range=0.3,
    )


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Return a table of 60 random texts with labels."""
    generator = np.random.default_rng(5)
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["text", "label"])
        for _ in range(60):
            words = generator.choice(WORDS, generator.integers(1, 22))
            writer.writerow([" ".join(words), generator.choice(TASK["labels"])])
    return path


@pytest.fixture(scope="module")
def export(model, rows):
    def make(output, kind="onnx", **values):
        pytest.importorskip(QUANTIZERS[kind], reason="an optional package")
        given = {"run": str(model), "output": str(output), "format": kind, "precision": "int8"}
        config = build_section(ExportConfig, {**given, "calibrate": str(rows), **values})
        exporting.run(config, RunOptions(console=Console(io.StringIO())))
        return output

    return make


@pytest.fixture(scope="module", params=FORMATS)
def exported(export, request, tmp_path_factory):
    for package in ENGINES[FORMATS[request.param][0]].packages:
        pytest.importorskip(package, reason="an optional package")
    output = tmp_path_factory.mktemp(request.param) / "exported"
    return export(output, request.param, max_metric_drop=0.5), *FORMATS[request.param]


def test_both_graphs_are_measured_and_described(exported, rows):
    folder, _, file = exported
    manifest = read_manifest(folder)
    measured = manifest["int8"]
    assert (measured["metric"], measured["source"]) == ("accuracy", rows.name)
    assert measured["rows"] == measured["calibration_rows"] == 60
    card = (folder / CARD).read_text()
    for precision in ("float32", "int8"):
        assert f"| {precision} | {measured[precision]:.4f} |" in card
    assert file in read_sums(folder)


def test_scores_are_those_of_the_float32_graph_but_for_rounding(exported, rows):
    folder, engine, _ = exported
    texts = {"text": [row["text"] for row in csv.DictReader(rows.open(newline=""))]}
    exact, rounded = (
        ENGINES[engine].load(folder, precision=precision).predict(texts)["probabilities"]
        for precision in ("float32", "int8")
    )
    assert 1e-5 < np.abs(exact - rounded).max() < 0.25
    assert np.corrcoef(exact[:, 0], rounded[:, 0])[0, 1] > 0.95


def test_engine(exported):
    folder, engine, _ = exported
    texts = ["ba ce", "", "go " * 20, "da fe hi bo", "hu"]
    diverged = TokenIdsEngine(
        folder,
        lambda inputs: {"logits": np.full((len(inputs["input_mask"]), 2), np.nan, np.float32)},
    )
    check_engine(ENGINES[engine].load(folder, precision="int8"), {"text": texts}, diverged=diverged)


def test_it_is_what_score_takes(exported, rows, tmp_path, monkeypatch):
    folder, engine, _ = exported
    monkeypatch.chdir(tmp_path)
    for output, precision in (("auto.csv", "auto"), ("int8.csv", "int8"), ("f32.csv", "float32")):
        line = f"score --model {folder} --engine {engine} --precision {precision} --input {rows}"
        with pytest.raises(SystemExit) as exited:
            main([*line.split(), "--output", output])
        assert exited.value.code == 0
    assert read_manifest("auto.csv")["precision"] == "int8"
    contents = {name: (tmp_path / f"{name}.csv").read_bytes() for name in ("auto", "int8", "f32")}
    assert contents["auto"] == contents["int8"] != contents["f32"]


def test_it_is_measured_against_float32(exported, rows, tmp_path):
    folder, engine, _ = exported
    texts = {"text": [row["text"] for row in csv.DictReader(rows.open(newline=""))]}
    exact, rounded = (
        ENGINES[engine].load(folder, precision=precision).predict(texts)["predicted_label"]
        for precision in ("float32", "int8")
    )
    config = EvaluateConfig(
        model=str(folder),
        data=str(rows),
        output=str(tmp_path / "measured"),
        engine=engine,
        precision="int8",
    )
    log = io.StringIO()
    manifest = evaluation.run(config, RunOptions(console=Console(log)))
    of_export = read_manifest(folder)["int8"]
    metrics = json.loads((tmp_path / "measured" / "metrics.json").read_text())
    assert metrics["accuracy"] == pytest.approx(of_export["int8"])
    assert metrics["float32"] == manifest["float32"]
    assert metrics["float32"]["metrics"]["accuracy"] == pytest.approx(of_export["float32"])
    assert metrics["float32"]["rows"] == 60
    assert metrics["float32"]["equal_rows"] == int((exact == rounded).sum())
    assert manifest["precision"] == "int8"
    assert "int8 and float32 agree on" in log.getvalue()


def test_a_run_is_measured_in_float32_alone(model, rows, tmp_path):
    config = EvaluateConfig(
        model=str(model), data=str(rows), output=str(tmp_path / "out"), precision="bfloat16"
    )
    with pytest.raises(UsageError, match="--precision bfloat16: .* is not an exported model"):
        evaluation.run(config, RunOptions(console=Console(io.StringIO())))


def test_the_same_bytes_twice(exported, export, tmp_path):
    folder, _, file = exported
    kind = next(name for name, values in FORMATS.items() if values[1] == file)
    again = export(tmp_path / "again", kind, max_metric_drop=0.5)
    assert read_sums(again) == read_sums(folder)


# As on the machine that exports: writes the scores that OpenVINO has in int8 for the probe rows.
WRITE = """
import sys, json
from pathlib import Path
import openvino
from bert_tf.engines.probes import PROBES, write_probes
from bert_tf.engines.registry import ENGINES
for folder in map(Path, sys.argv[1:]):
    graph = openvino.Core().read_model(folder / "model_int8.onnx")
    openvino.save_model(graph, folder / "openvino_model_int8.xml", compress_to_fp16=False)
    load = ENGINES["openvino"].load
    engine = load(folder, threads=1, is_checked=True, precision="int8", allows_drift=True)
    rows = json.loads((folder / PROBES).read_text())["rows"]
    write_probes(folder, rows, engine.predict(rows), "int8")
"""
CHECK = """
import sys
from bert_tf.base.errors import UsageError
from bert_tf.engines.registry import ENGINES
for folder in sys.argv[1:]:
    try:
        ENGINES["openvino"].load(folder, threads=1, is_checked=True, precision="int8")
        print("passes")
    except UsageError as error:
        print(error)
"""


@pytest.mark.skipif("avx512_vnni" not in processor_flags(), reason="this processor lacks VNNI")
def test_probes_tell_products_that_saturate_without_vnni(export, tmp_path, monkeypatch):
    """8-bit weights in half of their range have the same scores without VNNI; others do not.

    OpenVINO multiplies by oneDNN, whose instructions can be limited; onnxruntime's cannot.
    """
    pytest.importorskip("openvino", reason="an optional package")
    quantization = pytest.importorskip("onnxruntime.quantization", reason="an optional package")
    half = export(tmp_path / "half", max_metric_drop=1.0)
    quantize = quantization.quantize_static

    def quantize_wholly(*files, **options):
        quantize(*files, **{**options, "reduce_range": False})

    monkeypatch.setattr(quantization, "quantize_static", quantize_wholly)
    whole = export(tmp_path / "whole", max_metric_drop=1.0)

    def run(code, **environment):
        return subprocess.run(
            [sys.executable, "-c", code, str(half), str(whole)],
            env={**os.environ, **environment},
            cwd=Path(__file__).parents[3],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()

    run(WRITE)
    assert run(CHECK) == ["passes", "passes"]
    first, second = run(CHECK, ONEDNN_MAX_CPU_ISA="AVX512_CORE")
    assert first == "passes"
    assert re.match(rf"{whole}: openvino in int8 differs by 0\.\d+ .* --allow-drift", second)


def test_a_graph_that_is_too_bad_is_not_written(export, tmp_path, monkeypatch):
    worse = Int8Comparison(
        metric="accuracy", float32=0.9, int8=0.88, rows=60, calibration_rows=60, source="rows.csv"
    )
    monkeypatch.setattr(exporting, "add_int8_graph", lambda *_, **__: worse)
    output = tmp_path / "out"
    with pytest.raises(InputError, match="accuracy on the 60 rows of rows.csv is 0.9000 in float"):
        export(output)
    assert not output.exists()
    export(output, max_metric_drop=0.03)


def test_a_loss_falls_where_it_rises():
    worse = Int8Comparison(
        metric="loss", float32=0.5, int8=0.7, rows=2, calibration_rows=2, source="rows.csv"
    )
    assert worse.drop == pytest.approx(0.2)
    worse.check(0.21)
    with pytest.raises(InputError, match="more than --max-metric-drop 0.19"):
        worse.check(0.19)


@pytest.mark.parametrize(
    ("exact", "int8", "is_refused"),
    [(0.9, math.nan, True), (math.nan, math.nan, True), (math.nan, 0.9, False)],
)
def test_a_metric_that_is_no_number_is_worse_than_any(exact, int8, is_refused):
    found = Int8Comparison(
        metric="f1", float32=exact, int8=int8, rows=2, calibration_rows=2, source="rows.csv"
    )
    with pytest.raises(InputError, match="f1") if is_refused else contextlib.nullcontext():
        found.check(1.0)


def test_its_keys_go_together(model, rows, tmp_path):
    given = {"run": str(model), "output": str(tmp_path / "out"), "precision": "int8"}
    with pytest.raises(ConfigError, match="precision: does not apply to --format savedmodel; it"):
        build_section(ExportConfig, {**given, "calibrate": str(rows)})
    given["format"] = "openvino"
    with pytest.raises(ConfigError, match="calibrate: goes with --precision int8"):
        build_section(ExportConfig, given)


def test_what_it_needs_is_said_before_anything_is_written(model, rows, tmp_path):
    given = {"run": str(model), "output": str(tmp_path / "out"), "precision": "int8"}
    given["format"] = "onnx"
    missing = build_section(ExportConfig, {**given, "calibrate": str(tmp_path / "no.csv")})
    with pytest.raises(UsageError, match=r"--calibrate .*no.csv: no such file"):
        exporting.run(missing, RunOptions(console=Console(io.StringIO())))
    sizes = {"num_hidden_layers": 1, "intermediate_size": 8, "max_position_embeddings": 32}
    encoder = write_encoder(tmp_path / "encoder", vocab=VOCAB, seed=3, hidden_size=8, **sizes)
    untuned = build_section(ExportConfig, {**given, "run": str(encoder), "calibrate": str(rows)})
    with pytest.raises(UsageError, match="not fine-tuned for a task"):
        exporting.run(untuned, RunOptions(console=Console(io.StringIO())))
    assert not (tmp_path / "out").exists()
