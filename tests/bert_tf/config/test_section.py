"""Values in, checked sections out; every fault is reported at once, with a cure."""

from typing import Annotated, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.base.errors import ConfigError
from bert_tf.config.plain_yaml import read_yaml, yaml_text
from bert_tf.config.section import (
    Fraction,
    FractionBelowOne,
    PositiveInt,
    Section,
    build_section,
    option,
    plain_values,
)
from bert_tf.config.sections import EmbedConfig
from bert_tf.config.values import Bounds


class Sample(Section):
    section_name: ClassVar[str] = "sample"

    path: str = option("where it is")
    steps: PositiveInt = option("updates", 10)
    rate: Fraction = option("a fraction", 0.5)
    scale: Annotated[float, Bounds(above=0.0)] = option("a factor", 1.0)
    decay: FractionBelowOne = option("of a mean", 0.9)
    length: Annotated[int, Bounds(maximum=16)] = option("of a row", 8)
    mode: str = option("how", "fast", choices=("fast", "small"))
    strict: bool = option("refuse doubt", False)
    names: tuple[str, ...] = option("several", ())
    limit: int | None = option("no more than this", None)
    files: tuple[str, ...] = option("what is read", (), reads="files")
    parts: tuple[Fraction, ...] = option("fractions", ())


def test_home_is_written_as_in_a_shell(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", "/home/ann")
    monkeypatch.chdir(tmp_path)
    values = {"path": "~/x", "files": ["~/a/", "~", "~ann/b", "c~/d"]}
    sample = build_section(Sample, values)
    assert sample.files == ("/home/ann/a/", "/home/ann", "~ann/b", "c~/d")
    assert sample.path == "~/x"  # no path by its declaration
    (tmp_path / "~").mkdir()
    assert build_section(Sample, values).files[0] == "~/a/"


@pytest.mark.parametrize(
    ("key", "raw", "value"),
    [
        ("steps", "20", 20),
        ("steps", "1e3", 1000),
        ("steps", "1_000", 1000),
        ("steps", "010", 10),
        ("path", "no", "no"),
        ("path", 2, "2"),
        ("strict", "On", True),
        ("strict", "off", False),
        ("steps", 9007199254740993, 9007199254740993),
        ("rate", "5e-1", 0.5),
        ("rate", 1, 1.0),
        ("scale", 1e-300, 1e-300),
        ("decay", 0, 0.0),
        ("length", -3, -3),
        ("strict", "true", True),
        ("strict", False, False),
        ("names", "one", ("one",)),
        ("names", ["one", "two"], ("one", "two")),
        ("parts", "0.5, 0.25", (0.5, 0.25)),
        ("parts", "[1,0]", (1.0, 0.0)),
        ("parts", "[]", ()),
        ("parts", [1, "0.5"], (1.0, 0.5)),
        ("parts", 1, (1.0,)),
        ("limit", None, None),
        ("limit", "", None),
        ("mode", "small", "small"),
    ],
)
def test_values_are_converted(key, raw, value):
    assert getattr(build_section(Sample, {"path": "p", key: raw}), key) == value


@pytest.mark.parametrize(
    ("key", "raw", "message"),
    [
        ("steps", 0, "sample.steps: expected a number at least 1, got 0"),
        ("steps", "many", "sample.steps: expected an integer, got 'many'"),
        ("steps", 1.5, "sample.steps: expected an integer, got 1.5"),
        ("steps", True, "sample.steps: expected an integer, got True"),
        ("steps", None, "sample.steps: needs a value, got nothing"),
        ("rate", 1.5, "sample.rate: expected a number from 0.0 to 1.0, got 1.5"),
        ("rate", "nan", "sample.rate: expected a number, got 'nan'"),
        ("scale", 0, "sample.scale: expected a number above 0.0, got 0"),
        ("scale", "inf", "sample.scale: expected a number, got 'inf'"),
        ("decay", "1", "sample.decay: expected a number at least 0.0 and below 1.0, got '1'"),
        ("decay", -1, "sample.decay: expected a number at least 0.0 and below 1.0, got -1"),
        ("length", 1e9, "sample.length: expected a number at most 16, got 1000000000.0"),
        ("path", "", "sample.path: expected text, got nothing"),
        ("names", ["a", ""], "sample.names: expected text, got nothing"),
        ("mode", "smal", "expected one of fast, small, got 'smal'; did you mean 'small'?"),
        ("strict", "maybe", "sample.strict: expected true or false, got 'maybe'"),
        ("path", True, "sample.path: expected text, got True"),
        ("path", ["a"], "sample.path: expected text, got ['a']"),
        ("steps", "x" * 999, f"sample.steps: expected an integer, got '{'x' * 98}…"),
        ("names", [{}], "sample.names: expected text, got {}"),
        ("parts", "0.5,2", "sample.parts: expected a number from 0.0 to 1.0, got '2'"),
        ("parts", [0.5, "x"], "sample.parts: expected a number, got 'x'"),
        ("stesp", 3, "sample.stesp: unknown key; did you mean 'sample.steps'?"),
        ("stri", 3, "sample.stri: unknown key; did you mean 'sample.strict'?"),
        (
            "qqq",
            3,
            "known keys: path, steps, rate, scale, decay, length, mode, strict, names, limit",
        ),
        ("path", None, "--path is missing: where it is"),
    ],
)
def test_a_fault_names_the_key_what_is_allowed_and_what_came(key, raw, message):
    with pytest.raises(ConfigError) as caught:
        build_section(Sample, {"path": "p", key: raw})
    assert message in str(caught.value)
    assert len(caught.value.faults) == 1


def test_all_faults_are_reported_at_once_with_their_sources():
    with pytest.raises(ConfigError) as caught:
        build_section(
            Sample,
            {"steps": 0, "rate": 2, "color": 1},
            {"steps": "run.yaml: sample.steps", "rate": "--rate"},
        )
    assert len(caught.value.faults) == 4
    assert str(caught.value).startswith("run.yaml: sample.steps: expected")
    assert "\n--rate: expected" in str(caught.value)


texts = st.sampled_from(["no", "010", "~", "null", " x", "#", "a: b", "\x85"]) | st.text(
    st.characters(codec="utf-8"), min_size=1
)


@given(
    st.fixed_dictionaries(
        {
            "path": texts,
            "steps": st.integers(1, 10**12),
            "rate": st.floats(0, 1),
            "mode": st.sampled_from(["fast", "small"]),
            "strict": st.booleans(),
            "names": st.lists(texts),
            "limit": st.none() | st.integers(),
        }
    )
)
def test_a_section_survives_being_written_and_read(values):
    built = build_section(Sample, values)
    assert build_section(Sample, built.as_dict()) == built
    written = read_yaml(yaml_text(built.as_dict()))
    assert build_section(Sample, written) == built
    assert plain_values(Sample, written) == built.as_dict()


def test_an_empty_text_that_a_job_has_set_is_not_none():
    """`search` computes vectors with the prompt "", and has to find its own marker again."""
    config = EmbedConfig(model="m", input=("in.csv",), output="out.parquet", prompt_name="")
    assert plain_values(EmbedConfig, read_yaml(yaml_text(config.as_dict()))) == config.as_dict()


def test_plain_values_of_another_release_stay_as_they_are():
    values = {"steps": "20", "rate": "7", "gone": "x"}
    assert plain_values(Sample, values) == {"steps": 20, "rate": "7", "gone": "x"}
