"""The engine that runs an exported folder."""

import dataclasses
import sys
from types import SimpleNamespace

import pytest

from bert_tf.base.checksums import write_sums
from bert_tf.base.errors import ConfigError, InputError, UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import ScoreConfig
from bert_tf.data.text.tokenizer_json import TOKENIZER, TOKENIZER_CONFIG
from bert_tf.data.text.vocabulary_files import ADDED_TOKENS, VOCAB
from bert_tf.engines.registry import (
    ENGINES,
    EngineEntry,
    check_is_exported,
    exported_folder,
    resolve_engine,
)

GIVEN = {"model": "m", "input": ["a.csv"], "output": "b.csv"}


def entry(name: str, *packages: str) -> EngineEntry:
    return EngineEntry(name=name, module=name, packages=packages, model_file=f"model.{name}")


@pytest.fixture
def registered(monkeypatch):
    """Two engines beside those of this package: one is installed, one is not."""
    monkeypatch.setitem(ENGINES, "absent", entry("absent", "no_such_package_anywhere"))
    monkeypatch.setitem(ENGINES, "json", entry("json", "json"))


def test_auto_takes_the_first_that_is_installed_and_able(registered, tmp_path):
    (tmp_path / "model.absent").touch()
    (tmp_path / "model.json").touch()
    assert resolve_engine("auto", tmp_path).name == "json"
    (tmp_path / "saved_model.pb").touch()
    assert resolve_engine("auto", tmp_path).name == "tensorflow"
    assert resolve_engine("json", tmp_path).name == "json"


def test_an_engine_that_cannot_is_refused_with_one_that_can(registered, tmp_path):
    (tmp_path / "model.absent").touch()
    with pytest.raises(UsageError, match="is installed; pip install 'bert-pipeline\\[absent\\]'"):
        resolve_engine("auto", tmp_path)
    with pytest.raises(UsageError, match="--engine absent: needs no_such_package_anywhere"):
        resolve_engine("absent", tmp_path)
    with pytest.raises(UsageError, match=r"has no model\.json, .*; take --engine absent"):
        resolve_engine("json", tmp_path)


def test_an_engine_is_passed_over_where_it_cannot_run_the_task(monkeypatch, tmp_path):
    """Or where a file that it needs is missing."""
    picky = dataclasses.replace(
        entry("picky", "json"),
        model_file="model.json",
        model_fault=f"{__name__}:model_fault",
        needed_files=("task.json",),
    )
    monkeypatch.setattr("bert_tf.engines.registry.ENGINES", {"picky": picky})
    monkeypatch.setitem(sys.modules, __name__, SimpleNamespace(model_fault=model_fault))
    (tmp_path / "model.json").touch()
    with pytest.raises(UsageError, match="is not an exported model"):
        resolve_engine("auto", tmp_path)
    (tmp_path / "task.json").write_text("hard")
    with pytest.raises(UsageError, match="picky cannot run hard"):
        resolve_engine("auto", tmp_path)
    with pytest.raises(UsageError, match="--engine picky: cannot run hard; let --engine auto"):
        resolve_engine("picky", tmp_path)
    both = {"picky": picky, "json": entry("json", "json")}
    monkeypatch.setattr("bert_tf.engines.registry.ENGINES", both)
    assert resolve_engine("auto", tmp_path).name == "json"
    (tmp_path / "task.json").write_text("easy")
    assert resolve_engine("auto", tmp_path).name == "picky"


def model_fault(folder, entry):
    task = (folder / "task.json").read_text()
    return None if task == "easy" else f"cannot run {task}"


def test_openvino_is_passed_over_where_it_would_crash(monkeypatch, tmp_path):
    (tmp_path / "saved_model.pb").touch()
    for file in ENGINES["openvino"].needed_files:
        (tmp_path / file).touch()
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    entry = ENGINES["openvino"]
    assert entry.fault(tmp_path).startswith("would crash with ONEDNN_MAX_CPU_ISA")
    if entry.is_installed():
        with pytest.raises(UsageError, match="--engine openvino: would crash.*let --engine auto"):
            resolve_engine("openvino", tmp_path)


def test_a_name_of_no_engine_is_refused(tmp_path):
    with pytest.raises(UsageError, match="engine 'opnvino' is not known; take one of auto, openv"):
        resolve_engine("opnvino", tmp_path)


def test_a_registered_engine_is_a_value_of_the_config(registered):
    assert build_section(ScoreConfig, {**GIVEN, "engine": "json"}).engine == "json"
    with pytest.raises(
        ConfigError, match="one of auto, .*tensorflow, cuda, absent, json, got 'jsn'; did"
    ):
        build_section(ScoreConfig, {**GIVEN, "engine": "jsn"})


def test_a_run_is_to_be_exported_first(tmp_path):
    (tmp_path / "best").mkdir()
    with pytest.raises(UsageError, match="is a run, not an exported model; run bert-pipeline expo"):
        check_is_exported(tmp_path)


def test_other_folders_are_refused(tmp_path):
    with pytest.raises(UsageError, match=r"it has no .*saved_model\.pb"):
        check_is_exported(tmp_path)
    with pytest.raises(UsageError, match="no such model directory"):
        check_is_exported(tmp_path / "absent")


def test_an_engine_reads_its_files_and_folders_alone():
    reads = ENGINES["tensorflow"].reads
    assert reads("saved_model.pb")
    assert reads("variables/variables.index")
    assert reads("task.json")
    assert not reads("model.safetensors")
    assert not reads("variables")
    assert entry("json").reads("model.json")
    assert not entry("json").reads("task.json")


@pytest.mark.parametrize(
    ("name", "graphs"),
    [
        ("openvino", {"openvino_model.xml", "openvino_model.bin", "model.onnx"}),
        ("onnxruntime", {"model.onnx"}),
    ],
)
def test_engines_of_token_ids_read_their_graphs_the_weights_and_the_tokenizer(name, graphs):
    read = {
        *graphs,
        *("config.json", "model.safetensors", "task.json"),
        *(VOCAB, TOKENIZER, TOKENIZER_CONFIG, ADDED_TOKENS),
    }
    others = {"openvino_model.xml", "openvino_model.bin", "model.onnx", "saved_model.pb"}
    assert {file for file in read | others if ENGINES[name].reads(file)} == read


def test_a_damaged_file_of_another_format_that_is_read_is_refused(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"graph")
    for file in ENGINES["openvino"].needed_files:
        (tmp_path / file).touch()
    write_sums(tmp_path, ["model.onnx"])
    (tmp_path / "model.onnx").write_bytes(b"grape")
    with pytest.raises(InputError, match=r"model\.onnx: has changed since it was written"):
        ENGINES["openvino"].load(tmp_path)


def test_the_newest_version_is_taken_of_what_tensorflow_serving_serves(tmp_path):
    assert exported_folder(tmp_path / "absent") == tmp_path / "absent"
    for name in ("9", "10", "11", "assets"):
        (tmp_path / name).mkdir()
    assert exported_folder(tmp_path) == tmp_path
    for name in ("9", "10", "assets"):
        (tmp_path / name / "saved_model.pb").touch()
    assert exported_folder(tmp_path) == tmp_path / "10"
    (tmp_path / "saved_model.pb").touch()
    assert exported_folder(tmp_path) == tmp_path
