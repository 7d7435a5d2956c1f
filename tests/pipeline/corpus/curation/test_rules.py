"""Each measurement on text whose value can be counted by hand."""

import math

import pytest

from bert_tf.config.sections import PreprocessConfig
from pipeline.corpus.curation.registry import RULES
from pipeline.corpus.documents import DocumentRules, clean_raw
from pipeline.corpus.raw_block import RawBlock, Texts

RULE = {rule.name: rule for rule in RULES}
GRAMS = "a b c d e a b c d e a b c d e f"  # 31 characters


def measured(*documents):
    texts = Texts.of_rows([each.encode() for each in documents], [*range(1, len(documents) + 1)])
    raw = RawBlock(source="x", index=0, texts=texts)
    return clean_raw(raw, DocumentRules.from_config(PreprocessConfig(input=("x",)))).measured[0]


CASES = [
    ("gopher_min_words", "Well, it is so.", 4),
    ("gopher_min_words", "你好。再见", 4),  # words without spaces
    ("gopher_max_word_length", "ab, abcd.", 3),
    ("gopher_max_word_length", "...", math.nan),
    *(
        (rule, text, math.nan)  # in scripts without spaces, which they cannot judge
        for rule in ("gopher_min_word_length", "gopher_max_word_length", "gopher_min_stop_words")
        for text in ("这座桥建于一八五〇年。", "橋はIBMが1850年に作った。", "สะพานนี้สร้างเมื่อปี")
    ),
    ("gopher_min_word_length", "IBM wrote 桥.", (3 + 5 + 1) / 3),
    ("gopher_max_hashes", "# a b c", 1 / 4),
    ("gopher_max_ellipses", "so... and … on", 2 / 5),
    ("gopher_max_bullet_lines", "- a\n\n• b\nc - d", 2 / 4),
    ("gopher_max_ellipsis_lines", "a...\nb…\nc… d\n\ne", 2 / 5),
    ("gopher_min_letter_words", "a 1 , b2", 2 / 4),
    ("gopher_min_stop_words", "the other, the and The that", 3),
    ("gopher_max_repeated_lines", "a\nb\na\na", 2 / 4),
    ("gopher_max_repeated_line_characters", "ab\nc\nab", 2 / 7),
    ("gopher_max_repeated_paragraphs", "a\nb\n\na\nb\n\na", 1 / 3),
    ("gopher_max_repeated_paragraph_characters", "a\nb\n\na\nb\n\na", 3 / 11),
    ("gopher_max_repeated_paragraphs", "a\nb\n\nb\na", 0),
    ("gopher_max_common_2_gram", "a b c a b", 2 * 3 / 9),
    ("gopher_max_common_2_gram", "aa b c d", 4 / 8),  # of equally frequent ones the first
    ("gopher_max_common_3_gram", "a b", 0),
    ("gopher_max_repeated_5_grams", GRAMS, 10 / 31),
    ("gopher_max_repeated_6_grams", GRAMS, 6 / 31),
    ("gopher_max_repeated_10_grams", GRAMS, 10 / 31),
    ("c4_min_sentences", "One. Two!\nThree", 3),
    ("c4_max_lorem_ipsum", "Lorem Ipsum, lorem  ipsum", 2),
    ("c4_max_braces", "a {b} {", 2),
    ("c4_min_line_words", "a  b-c\nd", [2, 1]),
    ("c4_min_line_words", "你好 a", [3]),
    ("c4_max_word_length", "abc é", [3]),
    ("c4_max_javascript", "JavaScript javascripts\njava script", [2, 0]),
    ("c4_max_policies", "Terms of Use\nWe use cookies", [1, 1]),
    ("c4_terminal_punctuation", 'So."\nso\nso...\nSo!', [1, 0, 0, 1]),
    ("fineweb_min_finished_lines", "So.\nso\n\nSo?\n你好。", 3 / 4),
    ("fineweb_min_finished_lines", 'So…\nSo."', 0),
    ("fineweb_max_short_lines", f"{'a' * 30}\n{'é' * 31}", 1 / 2),
    ("fineweb_max_repeated_characters", "ab\nab\n\nc", 2 / 5),
    ("fineweb_max_line_feeds", "a b\n\nc", 2 / 3),
    ("fineweb_max_line_feeds", "\n\na b", 0),
]


@pytest.mark.parametrize(("name", "text", "value"), CASES)
def test_a_measurement_is_what_is_counted_by_hand(name, text, value):
    rule = RULE[name]
    values = rule.measure(measured("other text", text, "", "and {more}\nof it"))
    if rule.of_lines:
        assert values[1 : 1 + len(value)].tolist() == value
    else:
        assert values.shape == (4,)
        assert values[1] == pytest.approx(value, nan_ok=True)


def test_every_rule_has_a_case():
    shown = {name for name, *_ in CASES}
    families = {rule.measure for rule in RULES if rule.name in shown}
    measures = {getattr(measure, "func", measure) for measure in families}
    assert {getattr(rule.measure, "func", rule.measure) for rule in RULES} == measures


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_text_without_lines_has_values(rule):
    values = rule.measure(measured("", "\n\n"))
    assert len(values) == (0 if rule.of_lines else 2)
