"""A vocabulary and data as artifacts."""

import pytest

from pipeline.lineage.trace import trace
from pipeline.outputs.manifest import describe_files, fingerprint, read_manifest, write_manifest


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A vocabulary from a corpus, and data from both."""
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
            "outputs": describe_files(path, {}),
        }
        write_manifest(path, manifest)
    return trace(tmp_path / "data", read_manifest("data"))
