"""Files that differ from their manifest are named, large ones by their size."""

import pytest

from pipeline.outputs.manifest import describe_files
from pipeline.report import artifact
from pipeline.report.artifact import files_line


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
