"""The files that are scored, and the names of their outputs."""

from __future__ import annotations

from pathlib import Path

import pytest

from bert_tf.base.errors import UsageError
from pipeline.scoring.tables import list_tables


def outputs_of(tmp_path: Path, *patterns: str) -> list[str]:
    folder = tmp_path / "out"
    tables, is_folder = list_tables(tuple(str(tmp_path / each) for each in patterns), str(folder))
    assert is_folder
    names = [str(Path(table.output).relative_to(folder)) for table in tables]
    assert names == [table.name for table in tables]
    return names


@pytest.fixture
def write(tmp_path):
    """Write a table of each of some names."""

    def make(*names: str) -> None:
        for name in names:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text("text\n")

    return make


def test_several_tables_keep_their_names_in_a_folder(tmp_path, write):
    write("b.csv", "a.jsonl", "sub/c.csv")
    assert outputs_of(tmp_path, "*", "sub/*") == ["a.jsonl", "b.csv", "c.csv"]
    with pytest.raises(UsageError, match="is one file, but 2 files are scored"):
        list_tables((str(tmp_path / "*"),), str(tmp_path / "out.csv"))


def test_tables_of_one_name_keep_the_folders_that_differ(tmp_path, write):
    write("data/a/rows.csv", "data/b/rows.csv", "data/b/c/others.csv")
    assert outputs_of(tmp_path, "data/*/rows.csv") == ["a/rows.csv", "b/rows.csv"]
    every = ["a/rows.csv", "b/c/others.csv", "b/rows.csv"]
    assert outputs_of(tmp_path, "data/**/*.csv") == every
    # No output may lie outside of the folder, however the inputs are named.
    assert outputs_of(tmp_path, "data/a/rows.csv", "data/a/../b/rows.csv") == every[::-2]


def test_partitions_of_a_hive_layout_stay(tmp_path, write):
    write("rows/day=1/part-a.csv", "rows/day=2/part-b.csv")
    assert outputs_of(tmp_path, "rows/*/*.csv") == ["day=1/part-a.csv", "day=2/part-b.csv"]
    assert outputs_of(tmp_path, "rows/day=1/*.csv") == ["part-a.csv"]


@pytest.mark.parametrize("name", ["s1.xlsx", "s1.txt", "s1.npy", "s1.cvs", "s1.bz2"])
def test_a_folder_is_not_called_like_a_file(tmp_path, write, name):
    write("a.csv")
    output = str(tmp_path / name)
    expected = rf"\{name[2:]} is not a format of this command; end the name with \.csv, "
    with pytest.raises(UsageError, match=expected):
        list_tables((str(tmp_path / "a.csv"),), output)
    assert list_tables((str(tmp_path / "a.csv"),), output + "/")[1]
    (tmp_path / name).mkdir()
    assert list_tables((str(tmp_path / "a.csv"),), output)[1]


@pytest.mark.parametrize("name", ["scored", "scored.v2", "2026.11.05", ".scored"])
def test_folders_may_have_dots(tmp_path, write, name):
    write("a.csv")
    assert list_tables((str(tmp_path / "a.csv"),), str(tmp_path / name))[1]


def test_outputs_never_replace_inputs(tmp_path, write):
    write("a.csv")
    source = str(tmp_path / "a.csv")
    with pytest.raises(UsageError, match="would replace the input"):
        list_tables((source,), source)
    for name in ("manifest.json", "rejects.jsonl"):
        (tmp_path / name).write_text('{"text": "x"}\n')
        with pytest.raises(UsageError, match="the job writes a file of this name"):
            list_tables((str(tmp_path / name),), str(tmp_path / "out"))
        with pytest.raises(UsageError, match="would replace the input"):
            list_tables((str(tmp_path / name),), str(tmp_path))
    old_rejects = tmp_path / "b.csv.rejects.jsonl"
    old_rejects.write_text('{"text": "x"}\n')
    with pytest.raises(UsageError, match="would replace the input"):
        list_tables((str(old_rejects),), str(tmp_path / "b.csv"))
    with pytest.raises(UsageError, match="format unknown"):
        (tmp_path / "a.txt").write_text("text\n")
        list_tables((str(tmp_path / "a.txt"),), str(tmp_path / "out.csv"))


def test_a_path_that_ends_like_an_earlier_one_does_not_take_its_name(tmp_path, write, monkeypatch):
    write("archive/x/a.csv", "x/a.csv")
    monkeypatch.chdir(tmp_path)

    def names(*inputs: str, **named: str) -> dict[str, str]:
        earlier = {f"{name}.csv": path for name, path in named.items()}
        tables, _ = list_tables(inputs, "out", named=earlier)
        return {table.source: table.name for table in tables}

    archived, own = str(tmp_path / "archive/x/a.csv"), str(tmp_path / "x/a.csv")
    # The archived one sorts first.
    for path in ("x/a.csv", own, "./x/a.csv"):
        assert names(archived, path, a="x/a.csv") == {archived: "archive/x/a.csv", path: "a.csv"}
        assert names(archived, path, a="x/a.csv", b=archived) == {archived: "b.csv", path: "a.csv"}
    # From another folder: one is the earlier file, two may both be.
    assert names(archived, a="../x/a.csv") == {archived: "a.csv"}
    assert "a.csv" not in names(archived, own, a="../x/a.csv").values()
    # The longer end is the more likely.
    assert names(archived, own, a="../x/a.csv", b="../archive/x/a.csv") == {
        archived: "b.csv",
        own: "a.csv",
    }
