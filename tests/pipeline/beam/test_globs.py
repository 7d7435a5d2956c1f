"""Globs match as Python's and a shell's do: hidden names only where the dot is written."""

import fnmatch
import glob
import os

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bert_tf.base.errors import UsageError
from pipeline.beam.globs import READ_AGAIN, glob_pattern, list_local, why_no_file


@given(st.text("ab.]^!\\", min_size=1, max_size=5), st.text("ab.*?[]!^\\", min_size=1, max_size=6))
@example(".a", "*a")
@example(".a", "*.a")
@example("]", "[]]")
@example("b", "[!]a]")
def test_a_name_matches_as_in_python_but_for_hidden_ones(name, pattern):
    is_hidden = name.startswith(".") and not pattern.startswith(".")
    expected = fnmatch.fnmatchcase(name, pattern) and not is_hidden
    assert bool(glob_pattern(pattern).fullmatch(name)) == expected
    assert bool(glob_pattern(f"x/{pattern}").fullmatch(f"x/{name}")) == expected


@pytest.mark.parametrize(
    "pattern",
    ["*", ".*", "?a", "*/*", "*/.*", ".*/*", ".x/*", "[.]a", "a*", "x?a", "x/*.a", "**/a", "**/.a"],
)
def test_paths_match_as_in_python(tmp_path, monkeypatch, pattern):
    names = ["a", ".a", "ba", "b.a", "x/a", "x/.a", "x/b.a", "x/y/a", ".x/a", "x/.y/a", "x/y/.a"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    every = glob.glob(pattern, recursive=True)  # noqa: PTH207  Path.glob finds hidden files
    found = {name for name in every if (tmp_path / name).is_file()}
    if pattern.startswith("**/"):  # without a folder too in Python
        found.discard(pattern.removeprefix("**/"))
    assert {name for name in names if glob_pattern(pattern).fullmatch(name)} == found


def test_links_to_folders_are_followed_and_no_folder_is_read_twice(tmp_path):
    (tmp_path / "corpus" / "deep").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    for name in ("corpus/a.txt", "corpus/deep/b.txt", "elsewhere/c.txt"):
        (tmp_path / name).write_text("x")
    (tmp_path / "corpus" / "again").symlink_to("deep")
    (tmp_path / "corpus" / "deep" / "loop").symlink_to("..")
    (tmp_path / "corpus" / "linked").symlink_to("../elsewhere")

    def found(pattern):
        return sorted(
            path.removeprefix(f"{tmp_path}/") for path in list_local(str(tmp_path / pattern))
        )

    assert found("corpus/**.txt") == ["corpus/a.txt", "corpus/deep/b.txt", "corpus/linked/c.txt"]
    assert found("corpus/*/*.txt") == ["corpus/deep/b.txt", "corpus/linked/c.txt"]
    assert found("corpus/again/*.txt") == ["corpus/again/b.txt"]


def test_a_quoted_tilde_is_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a.txt").write_text("x")
    assert list_local("~/*.txt") == {f"{tmp_path}/a.txt": 1}


@pytest.mark.parametrize("pattern", ["pipe.txt", "*.txt"])
def test_a_pipe_is_refused_before_it_is_read(tmp_path, pattern):
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(UsageError, match=r"pipe\.txt: is a pipe .*; write it to a file first"):
        list_local(str(tmp_path / pattern))


def test_standard_input_is_no_file():
    assert why_no_file("-") == READ_AGAIN
    with pytest.raises(UsageError, match="/dev/null: is a pipe or device"):
        list_local("/dev/null")
