"""Fingerprints know content, not names or times; damaged manifests are refused."""

import hashlib
import json
import os
import sys
import unicodedata
from importlib import metadata

import pytest

from bert_tf.base.checksums import write_sums
from bert_tf.base.errors import InputError
from bert_tf.base.files import remove_leftovers, replacing_directory, replacing_file
from pipeline.outputs.inputs import fingerprint
from pipeline.outputs.manifest import (
    MANIFEST_VERSION,
    check_files,
    describe_files,
    manifest_path,
    package_versions,
    read_manifest,
    write_manifest,
)


def test_a_files_fingerprint_is_its_sha256(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"text")
    assert fingerprint(path)["sha256"] == hashlib.sha256(b"text").hexdigest()
    assert fingerprint(path)["bytes"] == 4


def test_a_folders_fingerprint_follows_its_content_only(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name / "inner").mkdir(parents=True)
        (tmp_path / name / "inner" / "a").write_text("a")
        (tmp_path / name / "b").write_text("b")
    os.utime(tmp_path / "two" / "b", (0, 0))
    first, second = fingerprint(tmp_path / "one"), fingerprint(tmp_path / "two")
    assert first["sha256"] == second["sha256"]
    (tmp_path / "two" / "inner" / "a").write_text("c")
    assert fingerprint(tmp_path / "two")["sha256"] != first["sha256"]


def test_what_its_job_wrote_about_a_folder_is_not_its_content(tmp_path):
    (tmp_path / "model.safetensors").write_text("weights")
    before = fingerprint(tmp_path)
    write_manifest(tmp_path, {"command": "import-weights", "timings": {"total": 1.5}})
    (tmp_path / "config.yaml").write_text("import_weights: {}")
    write_sums(tmp_path, ["model.safetensors"])
    assert fingerprint(tmp_path) == before
    (tmp_path / "model.safetensors").write_text("WEIGHTS")
    assert fingerprint(tmp_path)["sha256"] != before["sha256"]
    assert fingerprint(tmp_path)["bytes"] == 7


def test_the_card_of_a_model_may_be_edited_other_files_of_its_name_may_not(tmp_path):
    (tmp_path / "README.md").write_text("a text of a corpus")
    before = fingerprint(tmp_path)
    (tmp_path / "README.md").write_text("another text")
    assert fingerprint(tmp_path) != before
    (tmp_path / "model.safetensors").write_text("weights")
    write_sums(tmp_path, ["model.safetensors"])
    before = fingerprint(tmp_path)
    (tmp_path / "README.md").write_text("what the model is for")
    assert fingerprint(tmp_path) == before


def test_records_are_known_by_their_manifest(tmp_path):
    for sequence in ("one", "two"):
        folder = tmp_path / sequence
        folder.mkdir()
        (folder / "train-00000.tfrecord").write_text(sequence)
        write_manifest(folder, {"command": "preprocess"})
    first, second = (fingerprint(tmp_path / sequence) for sequence in ("one", "two"))
    assert first["sha256"] == second["sha256"]
    assert first["bytes"] == 3


def test_a_manifest_is_in_a_folder_and_beside_a_file(tmp_path):
    (tmp_path / "vocab.txt").write_text("[PAD]\n")
    assert write_manifest(tmp_path, {"a": 1}) == tmp_path / "manifest.json"
    assert manifest_path(tmp_path / "vocab.txt") == tmp_path / "vocab.txt.manifest.json"
    assert read_manifest(tmp_path) == {"a": 1}
    assert read_manifest(tmp_path / "vocab.txt") is None


@pytest.mark.parametrize("content", [b"{", b"[]", b"", b'{"a": "\xff"}', b'{"checksum": "1"}'])
def test_a_damaged_manifest_is_refused(tmp_path, content):
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(InputError, match="damaged manifest.*--overwrite"):
        read_manifest(tmp_path)


def test_a_run_is_described_by_what_stays_of_it(tmp_path):
    """The hash of a model is that of its writing, others may be known, the rest is hashed."""
    files = {
        name: f"content of {name}".encode()
        for name in (
            *("best/model.safetensors", "vocab.txt", "train-0", "checkpoints/step-1/state.json"),
            *("tensorboard/events", "config.yaml", "manifest.json", ".lock", "best/config.yaml"),
        )
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    write_sums(tmp_path / "best", ["model.safetensors"])
    (tmp_path / "best" / "model.safetensors").write_bytes(b"damaged")
    described = {made["path"]: made for made in describe_files(tmp_path, {"train-0": "abc"})}
    assert described.keys() == {
        *("best/SHA256SUMS", "best/model.safetensors", "best/config.yaml", "train-0", "vocab.txt")
    }
    assert described["train-0"] == {"path": "train-0", "bytes": 18, "sha256": "abc"}
    for name in ("best/model.safetensors", "vocab.txt"):
        assert described[name]["sha256"] == hashlib.sha256(files[name]).hexdigest()


def test_a_file_is_described_with_what_lies_beside_it(tmp_path):
    for name in ("out.csv", "out.csv.rejects.jsonl", "out.csv.manifest.json", "out2.csv"):
        (tmp_path / name).write_text(name)
    described = describe_files(tmp_path / "out.csv", {})
    assert [made["path"] for made in described] == ["out.csv", "out.csv.rejects.jsonl"]


@pytest.mark.parametrize("is_folder", [True, False])
def test_a_file_that_is_not_what_was_made_is_named(tmp_path, is_folder):
    output = tmp_path if is_folder else tmp_path / "vocab.txt"
    (tmp_path / "vocab.txt").write_text("[PAD]")
    write_manifest(output, {"outputs": describe_files(output, {})})
    check_files(output, {"vocab.txt"})
    (tmp_path / "vocab.txt").write_text("[PAT]")
    if is_folder:
        check_files(output, {"another.txt"})
    cure = "make it again$" if is_folder else r"or delete .*vocab.txt.manifest.json if the change"
    with pytest.raises(
        InputError, match=f"vocab.txt: has changed since it was written .*; .*{cure}"
    ):
        check_files(output, {"vocab.txt"})
    manifest_path(output).unlink()
    check_files(output, {"vocab.txt"})


def test_a_manifest_vouches_for_its_file_under_another_name(tmp_path):
    made, renamed = tmp_path / "vocab.txt", tmp_path / "pieces.txt"
    made.write_text("[PAD]")
    write_manifest(made, {"outputs": describe_files(made, {})})
    made.rename(renamed)
    manifest_path(made).rename(manifest_path(renamed))
    check_files(renamed)
    renamed.write_text("[PAT]")
    with pytest.raises(InputError, match="pieces.txt: has changed since it was written"):
        check_files(renamed)


@pytest.mark.parametrize("manager", [replacing_file, replacing_directory])
def test_nothing_is_left_of_an_output_that_failed(tmp_path, manager):
    with pytest.raises(RuntimeError), manager(tmp_path / "out") as aside:
        (aside / "part" if aside.is_dir() else aside).write_text("half")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_a_directory_takes_the_place_of_the_old_one_whole(tmp_path):
    for content in ("old", "new"):
        with replacing_directory(tmp_path / "out") as aside:
            (aside / content).write_text(content)
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "new"]


def make_folder(path):
    path.mkdir()
    (path / "content").write_text(path.name)


def test_a_directory_is_replaced_where_a_killed_process_of_this_number_left_the_old_one(tmp_path):
    """In a container any process may have the number 1."""
    names = ["out", f".out.{os.getpid()}.before", f".out.{os.getpid()}.partial"]
    for name in names:
        make_folder(tmp_path / name)
    with replacing_directory(tmp_path / "out") as aside:
        (aside / "new").touch()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["new"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)


@pytest.mark.parametrize(
    ("found", "left", "content"),
    [
        ([".out.17.partial"], [], None),
        (["out", ".out.17.partial", ".out.18.partial"], ["out"], "out"),
        (["out", ".out.17.before"], ["out"], "out"),
        ([".out.17.before", ".out.17.partial"], ["out"], ".out.17.before"),
        ([".out.partial", "out.17.partial"], [".out.partial", "out.17.partial"], None),
    ],
)
def test_what_killed_processes_left_is_removed(tmp_path, found, left, content):
    """An old folder that was to be replaced, and was not yet, is put back; others stay."""
    for name in found:
        make_folder(tmp_path / name)
    remove_leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == left
    if content:
        assert (tmp_path / "out" / "content").read_text() == content


def test_no_folder_has_no_leftovers(tmp_path):
    remove_leftovers(tmp_path / "missing")
    assert not list(tmp_path.iterdir())


def test_versions_are_those_of_all_that_decides_results():
    versions = package_versions()
    for name in ("mwparserfromhell", "numba", "numpy", "pyarrow", "tensorflow-text"):
        assert versions[name] == metadata.version(name)
    assert sys.version.startswith(versions["python"])
    assert versions["unicode"] == unicodedata.unidata_version


def test_a_manifest_of_a_newer_version_is_refused_and_one_of_another_tool_is_not(tmp_path):
    write_manifest(tmp_path, {"command": "train", "manifest_version": MANIFEST_VERSION + 1})
    with pytest.raises(InputError, match="newer version of bert-pipeline; upgrade"):
        read_manifest(tmp_path)
    extension = {"name": "a browser's", "manifest_version": 3}
    (tmp_path / "manifest.json").write_text(json.dumps(extension))
    assert read_manifest(tmp_path) == extension
