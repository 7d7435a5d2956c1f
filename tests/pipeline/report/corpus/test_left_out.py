"""The description of a rule is its effect on the corpus."""

import bz2
import json

import pytest

from bert_tf.base.errors import UsageError
from bert_tf.config.sections import PreprocessConfig
from pipeline.beam.files import FileInfo
from pipeline.corpus.documents import DocumentRules, make_block
from pipeline.report.corpus.left_out import left_out, stored_lines
from pipeline.report.corpus.sample import read_sample

TEXTS = [
    "A whole sentence stands here.\nAll rights reserved.\nAnother one follows it.",
    "Sign in\nShort.",
    "12 34 56 78 90 12 34 56",
    "<p>Marked up</p><p>This site uses cookies.</p>",
]


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "a.jsonl"
    rows = [json.dumps({"text": text}) for text in TEXTS]
    path.write_text("\n".join([*rows, "{broken"]) + "\n")
    return path


def test_a_file_to_exclude_is_not_in_the_corpus(corpus):
    config = PreprocessConfig(input=(str(corpus),), exclude=(str(corpus),))
    with pytest.raises(UsageError, match="is also a file of --input"):
        left_out(config, [], [], most=1)


@pytest.mark.parametrize(
    "keys",
    [
        {"cleaning": ("whitespace", "boilerplate")},
        {"cleaning": ("whitespace", "html", "boilerplate")},
        {"min_document_words": 5},
        {"min_document_characters": 20},
        {"min_letter_fraction": 0.5},
    ],
)
def test_numbers_are_those_of_the_rule_by_itself(corpus, keys):
    config = PreprocessConfig(input=(str(corpus),), **keys)
    sample = read_sample(config, [FileInfo(str(corpus), corpus.stat().st_size)])
    rules = {rule.rule: rule for rule in left_out(config, sample.raw, sample.blocks, most=2)}
    (raw,) = sample.raw
    block = make_block(raw, DocumentRules.from_config(config))
    applied = {**block.evidence.dropped, **block.evidence.dropped_lines}
    assert applied
    for reason, number in applied.items():
        assert rules[reason].number == number
        assert rules[reason].is_on
    (reject,) = block.evidence.rejects
    (example,) = rules[reject.reason].examples
    assert (example.line, example.texts) == (5, {"line": "{broken"})


def test_short_documents_are_shown_where_no_limit_is_set(corpus):
    config = PreprocessConfig(input=(str(corpus),))
    sample = read_sample(config, [FileInfo(str(corpus), corpus.stat().st_size)])
    rules = left_out(config, sample.raw, sample.blocks, most=2)
    (rule,) = [rule for rule in rules if rule.key == "min_document_words: 50"]
    assert (rule.is_on, rule.number) == (False, 4)
    assert [example.line for example in rule.examples] == [1, 2]
    assert rule.examples[1].texts == {"document": "Sign in Short."}


def test_boilerplate_is_shown_where_it_is_switched_off(corpus):
    config = PreprocessConfig(input=(str(corpus),))
    sample = read_sample(config, [FileInfo(str(corpus), corpus.stat().st_size)])
    rule = next(
        rule
        for rule in left_out(config, sample.raw, sample.blocks, most=1)
        if rule.key == "cleaning: boilerplate"
    )
    assert (rule.is_on, rule.number) == (False, 3)
    (example,) = rule.examples
    assert (example.line, example.texts) == (1, {"line": "All rights reserved."})


# Lines of any content.


def test_lines_are_found_by_their_numbers_and_faulty_bytes_escaped(tmp_path, monkeypatch):
    monkeypatch.setattr("pipeline.report.corpus.left_out._STEP_BYTES", 7)
    path = tmp_path / "a.txt.bz2"
    path.write_bytes(bz2.compress("eins\n\nzwölf <b>\n".encode() + b"f\xfcnf\nlast"))
    assert stored_lines(str(path), [3, 1, 4, 5, 9], encoding="utf-8") == {
        1: "eins",
        3: "zwölf <b>",
        4: "f\\xfcnf",
        5: "last",
    }


def test_long_lines_are_cut_between_characters_around_the_fault(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"x" + "é".encode() * 2000 + b"\n" + b"a" * 3000 + b"\xff" + b"b" * 3000)
    whole, faulty = stored_lines(str(path), [1, 2], encoding="utf-8").values()
    assert whole == "x" + "é" * 499 + "…"
    assert faulty.startswith("…aaa") and faulty.endswith("bbb…") and "a\\xffb" in faulty
