"""YAML documents: aliases are read, but not those that stand for more than a config can hold."""

import time
import tracemalloc

import pytest
import yaml

from bert_tf.base.errors import UsageError
from bert_tf.config.resolve import read_yaml_sections
from bert_tf.config.yaml_values import read_yaml

# https://en.wikipedia.org/wiki/Billion_laughs_attack
LAUGHS = "a: &a [x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join([f'*{chr(97 + i)}'] * 9)}]\n" for i in range(20)
)
LONG_TEXT = f"a: &a {'x' * 1000}\nb: [{', '.join(['*a'] * 9000)}]\n"
MERGES = "a: &a {k: 1}\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} {{'<<': [{', '.join([f'*{chr(97 + i)}'] * 9)}], z{i}: 1}}\n"
    for i in range(20)
)


def test_anchors_and_merges_of_a_usual_size_are_read():
    text = "a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: [*a, *a]\n"
    assert read_yaml(text) == yaml.safe_load(text)


@pytest.mark.parametrize("text", [LAUGHS, LONG_TEXT, MERGES, "a: &a [*a]\n", "&a {*a : 1}"])
def test_an_alias_bomb_is_refused_before_anything_is_built(tmp_path, text):
    (tmp_path / "run.yaml").write_text(text)
    tracemalloc.start()
    try:
        with pytest.raises(UsageError, match=r"run\.yaml:1: not valid YAML: its aliases stand for"):
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


@pytest.mark.parametrize("number", ["1" + ":00" * 100_000, "1" + ":00" * 300 + ".5", "7" * 10_000])
def test_a_number_of_many_digits_is_text(number):
    began = time.process_time()
    assert read_yaml(f"a: {number}") == {"a": number}
    assert time.process_time() - began < 10
