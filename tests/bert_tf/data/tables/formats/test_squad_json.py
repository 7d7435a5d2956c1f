"""Lines of the parts of a JSON text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.data.tables.formats.squad_json import lines_of_parts

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
ENTRIES = st.fixed_dictionaries({"id": TEXT, "more": VALUES}) | VALUES
GROUPS = st.fixed_dictionaries({"first": VALUES, "entries": st.lists(ENTRIES, max_size=4)}) | VALUES


@given(groups=st.lists(GROUPS, max_size=4), indent=st.sampled_from([None, 0, 1, 4]))
def test_parts_are_on_the_lines_where_the_writer_began_them(groups, indent):
    """Oracle: each entry is replaced by a unique number, whose line is looked for in the text."""
    document = {"head": [1, "]}"], "groups": groups}
    text = json.dumps(document, indent=indent)
    lines = lines_of_parts(text, ("groups", None, "entries", None))
    for number, group in enumerate(groups):
        entries = group.get("entries") if isinstance(group, dict) else None
        for place in range(len(entries) if isinstance(entries, list) else 0):
            marked = json.loads(json.dumps(document))
            marked["groups"][number]["entries"][place] = 123456789.25
            before = json.dumps(marked, indent=indent).partition("123456789.25")[0]
            assert lines["groups", number, "entries", place] == before.count("\n") + 1


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("[]", {(): 1}),
        ('\n\n {"a"\n:\n[ ] }', {(): 3, ("a",): 5}),
        ('{"a": [\n1,\n\n{"b": [2]}]\n}', {(): 1, ("a",): 1, ("a", 0): 2, ("a", 1): 4}),
        ('{"a": [\n"]", 1]\n}', {(): 1, ("a",): 1, ("a", 0): 2, ("a", 1): 2}),
        ('{"a": {"x": [1]}, "b": [3]}', {(): 1, ("a",): 1}),
    ],
)  # fmt: skip
def test_only_what_lies_on_the_way_is_looked_at(text, lines):
    assert lines_of_parts(text, ("a", None)) == lines
