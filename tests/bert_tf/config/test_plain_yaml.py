"""YAML documents: scalars are text as written, and no document costs more than a config may."""

import tracemalloc

import pytest
import yaml
from behavior.timing import superlinear_growth
from hypothesis import example, given
from hypothesis import strategies as st

from bert_tf.base.errors import UsageError
from bert_tf.config.plain_yaml import LARGEST_YAML_BYTES, read_yaml, read_yaml_file, yaml_text
from bert_tf.config.resolve import read_yaml_sections

# https://en.wikipedia.org/wiki/Billion_laughs_attack
LAUGHS = "a: &a [x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join([f'*{chr(97 + i)}'] * 9)}]\n" for i in range(20)
)
LONG_TEXT = f"a: &a {'x' * 1000}\nb: [{', '.join(['*a'] * 9000)}]\n"
MERGES = "a: &a {k: 1}\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} {{'<<': [{', '.join([f'*{chr(97 + i)}'] * 9)}], z{i}: 1}}\n"
    for i in range(20)
)
TRICKY = ["", "no", "On", "010", "0x1F", "1_000", "1e6", "1.10", ".inf", "12:30", "2024-01-31"]
TRICKY += ["~", "null", "NULL", "<<", "=", " x", "x ", "#", "a #b", "a: b", "- a", "@id", "*.txt"]
TRICKY += ["[html", "{", "!x", "!!int", "&a", "%a", "|", ">", "?", "---", "...", "'", '"', "\\n"]
TRICKY += [
    "\t",
    "\n",
    "a\n b",
    "\r\n",
    "\x00",
    "\x85",
    "\u2028",
    "\ufeff",
    "\x1b[0m",
    "😀",
    "é" * 90,
]
texts = st.sampled_from(TRICKY) | st.text(st.characters(codec="utf-8"))


@pytest.mark.parametrize(
    "text",
    ["no", "yes", "on", "true", "010", "0x1F", "1_000", "1e6", "1.10", ".inf", "12:30", "="],
)
def test_a_plain_scalar_is_its_characters(text):
    assert read_yaml(f"a: {text}\nb: [{text}]") == {"a": text, "b": [text]}


@pytest.mark.parametrize("number", ["1" + ":00" * 100_000, "7" * 10_000, "2024-01-31"])
def test_what_looks_like_a_long_number_or_a_date_is_text(number):
    assert read_yaml(f"a: {number}") == {"a": number}


@pytest.mark.parametrize("digits", [":00", "7"])
def test_what_looks_like_a_long_number_takes_time_in_proportion(digits):
    """Computing a number to base 60 takes time with the square of its digits."""
    growth = superlinear_growth(read_yaml, lambda size: f"a: 1{digits * size}", size=100_000)
    assert growth is None


@pytest.mark.parametrize("text", ["no", "010", "null"])
def test_a_key_is_its_characters(text):
    assert read_yaml(f"'{text}': x\n{text}x: y") == {text: "x", f"{text}x": "y"}


@pytest.mark.parametrize("text", ["~", "null", "Null", "NULL", ""])
def test_null_is_nothing_and_in_quotes_text(text):
    assert read_yaml(f"a: {text}\nb: '{text}'\nc: !!str {text}") == {
        "a": None,
        "b": text,
        "c": text,
    }


def test_anchors_and_merges_are_read():
    text = "a: &a {x: u, y: v}\nb: {<<: *a, y: w}\nc: [*a, *a]\nd: {<<: [*a, {z: u}]}\n"
    assert read_yaml(text) == yaml.safe_load(text)


documents = st.recursive(
    st.none() | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=10,
)


@given(documents)
@example(TRICKY)
def test_what_is_written_reads_back_here_and_in_yaml_1_1(document):
    text = yaml_text(document)
    assert read_yaml(text) == document
    assert yaml.safe_load(text) == document


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: !!int 5", "tag !!int is not supported; write only the value"),
        ("a: !!null x", "tag !!null is not supported"),
        ("!!set {a, b}", "tag !!set is not supported"),
        ("a: [!!python/object:os.system x]", "tag !!python/object:os.system is not supported"),
        ("a: !mine 5", "tag !mine is not supported"),
        ("a: !!str [x]", "expected a scalar node, but found sequence"),
        ('a: "\\U00110000"', "an escape in it is not a valid character"),
        ("%YAML " + "1" * 5000 + ".1\n---\na", "not valid YAML"),
        ("{[a]: b}", "found unhashable key"),
        ("a: 1\n---\na: 2", "but found another document"),
    ],
)
def test_what_cannot_be_read_ends_in_a_line(tmp_path, text, message):
    (tmp_path / "run.yaml").write_text(text)
    with pytest.raises(UsageError, match="not valid YAML: ") as caught:
        read_yaml_sections(str(tmp_path / "run.yaml"))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("text", [LAUGHS, LONG_TEXT, MERGES, "a: &a [*a]\n", "&a {*a : 1}"])
def test_an_alias_bomb_is_refused_before_anything_is_built(tmp_path, text):
    (tmp_path / "run.yaml").write_text(text)
    tracemalloc.start()
    try:
        with pytest.raises(UsageError, match=r"run\.yaml:1: not valid YAML: its aliases expand to"):
            read_yaml_sections(str(tmp_path / "run.yaml"))
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 20_000, "nested too deeply"),
        ("{a: " * 20_000, "nested too deeply"),
        ("- " * 20_000, "nested too deeply"),
        ("#" * (1 << 20) + "\n", "larger than 1 MiB"),
    ],
)
def test_depth_and_size_end_in_a_line(tmp_path, text, message):
    (tmp_path / "run.yaml").write_text(text)
    with pytest.raises(UsageError, match=f"not valid YAML: it is {message}") as caught:
        read_yaml_sections(str(tmp_path / "run.yaml"))
    assert "\n" not in str(caught.value)


def test_a_larger_document_is_read_where_it_is_allowed(tmp_path):
    (tmp_path / "large.yaml").write_text("a: " + "x" * LARGEST_YAML_BYTES)
    assert len(read_yaml_file(tmp_path / "large.yaml", 2 * LARGEST_YAML_BYTES)["a"]) == 1 << 20
    with pytest.raises(yaml.YAMLError, match="larger than 1 MiB"):
        read_yaml_file(tmp_path / "large.yaml")


@pytest.mark.parametrize(
    ("text", "line", "cause"),
    [
        ("a:\n\tb: 1\n", 2, "a tab in the indentation; indent with spaces"),
        ("a:\n  b: @x\n", 2, "a value cannot begin with @; put it in quotes"),
        ("a:\n  b: 1\n  c: 2\n  b: 3\n", 4, "b is given twice; keep one"),
        ("a:\n  b: c: d\n", 2, "a second colon in a line, or a line that is indented deeper"),
        ("a:\n  b: 1\n   c: 2\n", 3, "a second colon in a line, or a line that is indented deeper"),
        ("a:\n    b: 1\n  c: 2\n", 3, "this line is indented differently from the lines above it"),
        ("a:\n  b: 'c' d\n", 2, "unexpected text after the end of a value"),
        ("a:\n  b: 1\n  c\n  d: 2\n", 4, "a key without a colon and a blank after it"),
        ("a:\n  b: 'c\n  d: e\n", 4, "the quote in line 2 is never closed"),
        ("a:\n  b: [1, 2\n  c: 3\n", 3, "in line 2 is missing a comma or its closing ]"),
        ('a:\n  b: "C:\\data"\n', 2, "a backslash in double quotes; use single quotes"),
        ("a:\n  b: *.txt\n", 2, "a value that begins with * or & is an alias; put it in quotes"),
    ],
)
def test_what_is_no_yaml_is_said_in_words_of_the_file(tmp_path, text, line, cause):
    path = tmp_path / "run.yaml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_yaml_sections(str(path))
    message = str(caught.value)
    assert message.startswith(f"{path}:{line}: not valid YAML: ")
    assert cause in message
