"""Runs that are exported to other libraries, whose export was interrupted, or that were not."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from behavior.scoring_runs import Log, config_of, fail, write_rows, write_run

from bert_tf.base.errors import UsageError
from bert_tf.config.sections import ExportConfig, RunnerConfig
from bert_tf.weights.import_weights import read_source
from bert_tf.weights.model_directory import read_model_directory
from pipeline.jobs import exporting, scoring

pytestmark = pytest.mark.slow  # exports models

RUNNER = RunnerConfig()
# Keras 3 saves weights through a NumPy conversion that NumPy 2 warns of.
KERAS_SAVES = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


@pytest.fixture(scope="module")
def run_directory(tmp_path_factory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "run")


def test_export_for_huggingface_has_no_saved_model(run_directory, tmp_path):
    config = ExportConfig(run=str(run_directory), output=str(tmp_path / "m"), format="huggingface")
    exporting.run(config, Log().options())
    written = json.loads((tmp_path / "m" / "config.json").read_text())
    assert written["architectures"] == ["BertForSequenceClassification"]
    assert written["id2label"] == {"0": "good", "1": "bad"}
    assert not (tmp_path / "m" / "saved_model.pb").exists()


@KERAS_SAVES
@pytest.mark.parametrize(
    ("kind", "files"),
    [
        ("keras-hub", {"model.weights.h5", "task.weights.h5", "tokenizer.json", "config.json"}),
        ("google-tf1", {"bert_model.ckpt.index", "bert_config.json", "vocab.txt"}),
    ],
)
def test_export_for_other_libraries_says_what_differs(kind, files, run_directory, tmp_path):
    config = ExportConfig(run=str(run_directory), output=str(tmp_path / "m"), format=kind)
    log = Log()
    manifest = exporting.run(config, log.options())
    assert {path.name for path in (tmp_path / "m").iterdir()} >= files | {"manifest.json"}
    assert "the exact GELU" in manifest["notes"][0]
    assert f"warning: {manifest['notes'][0]}\n" in log.stream.getvalue()
    assert manifest["notes"][0] in (tmp_path / "m" / "README.md").read_text()
    best, written = read_model_directory(run_directory), read_source(tmp_path / "m")
    for name, value in written.tensors.items():
        np.testing.assert_array_equal(value, best.tensors[name])


def test_an_export_that_was_interrupted_is_no_model(run_directory, tmp_path, monkeypatch):
    write_rows(tmp_path / "new.csv")
    export = ExportConfig(run=str(run_directory), output=str(tmp_path / "m"))
    with monkeypatch.context() as patch:
        patch.setattr(exporting, "model_card", fail)
        with pytest.raises(RuntimeError):
            exporting.run(export, Log().options())
    assert (tmp_path / "m" / "saved_model.pb").is_file()
    config = config_of(tmp_path / "m", tmp_path / "new.csv", output=tmp_path / "scored.csv")
    with pytest.raises(UsageError, match="m: is not finished; run the command that makes it again"):
        scoring.run(config, RUNNER, Log().options())


def test_a_run_is_no_exported_model(run_directory, tmp_path):
    write_rows(tmp_path / "new.csv")
    config = config_of(run_directory, tmp_path / "new.csv", output=tmp_path / "scored.csv")
    with pytest.raises(UsageError, match="run bert-pipeline export --run"):
        scoring.run(config, RUNNER, Log().options())
