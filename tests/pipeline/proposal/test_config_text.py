"""A section as YAML with comments."""

from hypothesis import example, given
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


# All but what YAML has no place for.
REASONS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufffe\uffff"))


@given(st.text(max_size=80), REASONS)
@example("a\nb", "x\ns: {k: other}\r\u2028y: 1\x00")
def test_any_text_is_read_back_and_no_comment_adds_a_key(value, reason):
    text = commented_yaml(
        "s",
        {"k": value, "n": [value]},
        reasons={"k": reason, "n": reason},
        heading=[reason],
        hints=[reason],
    )
    assert read_yaml(text) == {"s": {"k": value, "n": [value]}}
