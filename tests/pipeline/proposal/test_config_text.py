"""A section as YAML with comments."""

from hypothesis import given
from hypothesis import strategies as st

from bert_tf.config.plain_yaml import read_yaml
from pipeline.proposal.config_text import commented_yaml


def test_reasons_stand_beside_short_values_and_above_long_ones():
    long = "a path of more characters than there is room for/" * 2
    text = commented_yaml(
        "finetune",
        {"epochs": 3, "init": long},
        reasons={"epochs": "300 steps", "init": "6 layers"},
        heading=["command"],
        hints=["more"],
    )
    assert text.splitlines()[:4] == [
        "# command",
        "finetune:",
        "  epochs: 3                         # 300 steps",
        "  # 6 layers",
    ]
    assert text.endswith("\n  # more\n")


@given(st.text(max_size=80), st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"])))
def test_any_text_is_read_back(value, reason):
    text = commented_yaml("s", {"k": value, "n": [value]}, reasons={"k": reason}, heading=[])
    assert read_yaml(text) == {"s": {"k": value, "n": [value]}}
