"""The output of `inspect` for artifacts other than pretraining records."""

import gzip
import json
from html.parser import HTMLParser

import pytest
from behavior.pages import check_page

from bert_tf.base.errors import InputError, UsageError
from bert_tf.config.sections import ExportConfig
from pipeline.outputs.manifest import describe_files, write_manifest
from pipeline.report import artifact
from pipeline.report.artifact import content_lines, describe_artifact, files_line
from pipeline.report.page import artifact_page

SETTINGS = {"learning_rate": 5e-5, "adam_epsilon": 1e-6}
MANIFEST = {
    "command": "import-weights",
    "config": SETTINGS,
    "inputs": [{"path": f"{n}.txt", "bytes": 5, "sha256": "0" * 64} for n in range(403)],
    "timings": {"total": 62.0, "last_part": 21.0},
    "versions": {"keras": "3"},
}


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    config = {"layer_norm_eps": 1e-12, "id2label": {"0": "good"}, "label2id": {"good": 0}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(bytes(1500))
    return folder


class Cells(HTMLParser):
    """The texts of a page."""

    def __init__(self, page):
        super().__init__()
        self.texts = []
        self.feed(page)

    def handle_data(self, data):
        self.texts += data.strip().splitlines()


@pytest.mark.parametrize(("name", "compress"), [("a.csv", bytes), ("a.csv.gz", gzip.compress)])
def test_scored_tables_are_shown_as_text(tmp_path, name, compress):
    path = tmp_path / name
    path.write_bytes(compress("text,predicted_label\nschön,gut\nschlimm,schlecht\n".encode()))
    expected = [f"{name}: text,predicted_label", f"{name}: schön,gut"]
    assert content_lines({"command": "score"}, path, samples=2) == expected
    for other in ("manifest.json", "rejects.jsonl", "config.yaml", ".hidden"):
        (tmp_path / other).write_text("no table\n")
    assert content_lines({"command": "score"}, tmp_path, samples=2) == expected


def test_numbers_are_shown_faithfully_in_both_forms(model):
    write_manifest(model, MANIFEST)
    lines = list(describe_artifact(str(model), samples=1))
    for line in (
        "config: learning_rate = 5e-05",
        "config: adam_epsilon = 1e-06",
        "config.json: layer_norm_eps = 1e-12",
        "config.json id2label: 0 = good",
        "made in 62.0 s, of which 21.0 s since it was resumed",
        "input: and 400 more; 403 in all, 2.0 kB",
    ):
        assert line in lines
    assert sum(line.startswith("input: ") for line in lines) == 4
    page = artifact_page(str(model), samples=1)
    check_page(page)
    texts = Cells(page).texts
    assert {"5e-05", "1e-06", "and 400 more; 403 in all, 2.0 kB"} <= set(texts)
    assert "config.json: layer_norm_eps = 1e-12" in texts


def test_a_model_directory_without_a_manifest_is_shown(model):
    lines = list(describe_artifact(str(model), samples=1))
    assert lines == [
        f"{model}: model directory (HuggingFace folder) without a manifest",
        "config.json: layer_norm_eps = 1e-12",
        "config.json id2label: 0 = good",
        "files: config.json 77 bytes, model.safetensors 1.5 kB",
    ]
    assert set(lines) <= set(Cells(artifact_page(str(model), samples=1)).texts)


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff"])
def test_a_damaged_config_is_one_line(model, content):
    (model / "config.json").write_bytes(content)
    with pytest.raises(InputError, match=r"config\.json: damaged.*; expected (a )?JSON( object)?$"):
        list(describe_artifact(str(model), samples=1))


def test_what_is_no_output_is_reported_with_what_is(tmp_path, model):
    with pytest.raises(UsageError, match=r"gone: no such file or folder; check the path$"):
        list(describe_artifact(str(tmp_path / "gone"), samples=1))
    with pytest.raises(UsageError, match=r"it has no manifest\.json; give a vocabulary file, "):
        list(describe_artifact(str(tmp_path), samples=1))
    write_manifest(model, MANIFEST)
    with pytest.raises(UsageError, match=r"no manifest\.json, but holds some: inspect model in it"):
        list(describe_artifact(str(tmp_path), samples=1))
    part = model / "model.safetensors"
    with pytest.raises(UsageError, match=rf"it is a part of {model}, inspect that$"):
        list(describe_artifact(str(part), samples=1))


def test_defaults_are_listed_where_asked_for(model):
    config = ExportConfig(run="run", output="m").as_dict()
    write_manifest(model, {**MANIFEST, "command": "export", "config": config})
    short = list(describe_artifact(str(model), samples=1))
    full = list(describe_artifact(str(model), samples=1, all_settings=True))
    assert "config: run = run" in short
    hint = next(line for line in short if "with default values (see --all-settings)" in line)
    assert {line for line in short if line != hint} <= set(full)
    assert hint == "config: 5 more keys with default values (see --all-settings)"
    assert "config: format = savedmodel" in set(full) - set(short)
    assert hint not in full


def test_a_changed_file_is_reported(model):
    write_manifest(model, {**MANIFEST, "outputs": describe_files(model, {})})
    assert "outputs: 2 files unchanged (compared by SHA-256)" in describe_artifact(
        str(model), samples=1
    )
    (model / "model.safetensors").write_bytes(bytes(1499) + b"x")
    line = "warning: 1 of 2 files changed or missing: model.safetensors (another SHA-256)"
    assert line in describe_artifact(str(model), samples=1)


# Files that differ from their manifest are named, large ones by their size.


@pytest.fixture
def folder(tmp_path):
    for name, size in (("a", 10), ("b", 20), ("part/c", 30)):
        path = tmp_path / "out" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)
    return tmp_path / "out"


def test_untouched_files_are_as_written(folder):
    outputs = describe_files(folder, {})
    assert files_line(folder, outputs) == "outputs: 3 files unchanged (compared by SHA-256)"


def test_every_kind_of_difference_is_named(folder):
    outputs = describe_files(folder, {})
    (folder / "a").write_bytes(b"x" * 9 + b"y")
    (folder / "b").write_bytes(b"x" * 21)
    (folder / "part" / "c").unlink()
    assert files_line(folder, outputs) == (
        "warning: 3 of 3 files changed or missing: a (another SHA-256), b (21 bytes instead of "
        "20), part/c (missing)"
    )


def test_large_files_are_compared_by_size_alone(folder, monkeypatch):
    outputs = describe_files(folder, {})
    monkeypatch.setattr(artifact, "LARGEST_BYTES_HASHED", 30)
    (folder / "part" / "c").write_bytes(b"y" * 30)
    line = "outputs: 3 files unchanged (compared by size, 2 also by SHA-256)"
    assert files_line(folder, outputs) == line


def test_a_renamed_file_is_found_with_those_beside_it(tmp_path):
    (tmp_path / "old.csv").write_text("rows")
    (tmp_path / "old.csv.rejects.jsonl").write_text("")
    outputs = describe_files(tmp_path / "old.csv", {})
    for path in list(tmp_path.iterdir()):
        path.rename(path.with_name(path.name.replace("old", "new")))
    assert files_line(tmp_path / "new.csv", outputs).startswith("outputs: 2 files unchanged")
