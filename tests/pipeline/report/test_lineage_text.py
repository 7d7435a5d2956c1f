"""A lineage as text and JSON."""

import json
from pathlib import Path

import pytest

from pipeline.outputs.inputs import fingerprint
from pipeline.outputs.manifest import describe_files, read_manifest, write_manifest
from pipeline.report.lineage import lineage_json, lineage_lines, trace


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Return a vocabulary from a corpus, and data from both."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corpus.txt").write_text("text")
    (tmp_path / "vocab.txt").write_text("[PAD]")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.tfrecord").write_bytes(b"records")
    for path, command, inputs in (
        ("vocab.txt", "vocab", {"input": "corpus.txt"}),
        ("data", "preprocess", {"input": "corpus.txt", "vocab": "vocab.txt"}),
    ):
        manifest = {
            "command": command,
            "inputs": [{"key": key, **fingerprint(source)} for key, source in inputs.items()],
            "timings": {"total": 90.0},
            "finished": "2026-01-02T03:04:05+00:00",
            "versions": {"bert-pipeline": "0.1.0"},
            "outputs": describe_files(Path(path), {}),
        }
        write_manifest(path, manifest)
    return trace(tmp_path / "data", read_manifest("data"))


def test_a_line_per_input_below_what_was_made_of_it(made, tmp_path):
    (tmp_path / "corpus.txt").write_text("other")
    lines = lineage_lines(trace(made.path, made.manifest))
    assert [len(line) - len(line.lstrip()) for line in lines] == [0, 2, 2, 4]
    assert lines[0].endswith(
        "data: pretraining TFRecords, made by bert-pipeline preprocess 0.1.0 on 2026-01-02"
    )
    assert lines[1].startswith("  input: corpus.txt (4 bytes, SHA-256 982d9e3eb996, CHANGED since")
    assert "; WordPiece vocabulary, made by bert-pipeline vocab 0.1.0" in lines[2]


def test_json_holds_the_same_nested(made):
    document = json.loads(json.dumps(lineage_json(made)))
    vocab = document["inputs"][1]
    assert (vocab["key"], vocab["state"], vocab["made"]["command"]) == ("vocab", "same", "vocab")
    assert vocab["made"]["inputs"][0]["made"] is None
