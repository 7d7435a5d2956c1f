"""Globs match as Python's and a shell's do: hidden names only where the dot is written."""

import fnmatch
import glob

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.beam.globs import glob_pattern


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
