"""Rules one after the other, on documents and on lines."""

import itertools
import json
import textwrap

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.config.sections import PreprocessConfig
from pipeline.beam.files import FileInfo
from pipeline.corpus.curation import registry
from pipeline.corpus.curation.rule import Rule, judge
from pipeline.corpus.documents import DocumentRules, clean_raw, make_block
from pipeline.corpus.raw_block import RawBlock, Texts
from pipeline.report.corpus.left_out import left_out
from pipeline.report.corpus.sample import read_sample


def block_of(documents, *entries, **values):
    config = PreprocessConfig(input=("x",), curation=entries, sentence_splitter="none", **values)
    texts = Texts.of_rows([each.encode() for each in documents], [*range(1, len(documents) + 1)])
    return make_block(RawBlock(source="x", index=0, texts=texts), DocumentRules.from_config(config))


def documents_of(block):
    sentences = block.sentences.to_pylist()
    return [sentences[a:b] for a, b in itertools.pairwise(block.document_offsets.tolist())]


def capitals(text):
    """Count the lines that begin with a capital letter: a toy rule."""
    return text.total((text.data[text.starts] >= 65) & (text.data[text.starts] <= 90))


def test_a_new_rule_is_one_file_and_one_entry(monkeypatch):
    toy = Rule("toy_capitals", capitals, paper="none", groups=("toy",), minimum=2, highest=10)
    monkeypatch.setattr(registry, "RULES", [*registry.RULES, toy])
    block = block_of(["One\ntwo", "One\nTwo", "", "one"], "toy")
    assert documents_of(block) == [["One", "Two"]]
    assert block.document_lines.tolist() == [2]
    assert block.evidence.dropped == {"empty document": 1, "toy_capitals": 2}
    assert documents_of(block_of(["One\ntwo", "one"], "toy", "toy_capitals=1")) == [["One", "two"]]


def test_lines_go_and_are_counted_in_documents_that_stay():
    documents = ["Three words here\ntoo few\n\nMore words of it", "Set { in braces\nno"]
    block = block_of(
        [*documents, "Uses JavaScript a lot"],
        "c4_min_line_words", "c4_max_javascript", "c4_max_braces",
    )  # fmt: skip
    assert documents_of(block) == [["Three words here", "More words of it"]]
    assert block.evidence.dropped == {"c4_max_braces": 1, "empty document": 1}
    assert block.evidence.dropped_lines == {"c4_min_line_words": 1, "c4_max_javascript": 1}


def test_hard_wrapped_lines_are_judged_as_paragraphs():
    paragraphs = [
        "It was late in the evening when the last of the boats came home, and nobody was left on "
        "the quay to count them or to help them with the ropes and the nets of the men who had no "
        f"{word} to go back."
        for word in ("wish", "need", "time")
    ]
    wrapped = "\n\n".join(textwrap.fill(paragraph, 64) for paragraph in paragraphs)
    assert wrapped.splitlines()[3] == "back."
    config = PreprocessConfig(input=("x",), curation=("c4_min_line_words", "fineweb"))
    raw = RawBlock(source="x", index=0, texts=Texts.of_rows([wrapped.encode()], [1]))
    block = make_block(raw, DocumentRules.from_config(config))
    assert block.evidence.dropped_lines == {}
    assert documents_of(block) == [paragraphs]
    config = PreprocessConfig(input=("x",), curation=("c4_max_word_length=4",))
    assert make_block(raw, DocumentRules.from_config(config)).evidence.dropped_lines == {
        "c4_max_word_length": 3
    }


def test_a_rule_sees_what_earlier_ones_leave():
    """C4 looks for braces only in lines that it keeps."""
    texts = ["JavaScript { is not here\nfour words that stay", "so { it goes"]
    assert block_of(texts, "c4_max_braces").num_documents == 0
    block = block_of(texts, "c4_max_braces", "c4_max_javascript")
    assert documents_of(block) == [["four words that stay"]]


def test_what_cannot_be_judged_stays():
    rule = Rule("nothing", lambda text: np.array([np.nan, 0.0, 0.0]), paper="none", minimum=1)
    text, _ = lines_of(["a", "b", ""])
    assert judge(text, [rule])[0].items.tolist() == [1]


def lines_of(documents):
    texts = Texts.of_rows([each.encode() for each in documents], [*range(1, len(documents) + 1)])
    raw = RawBlock(source="x", index=0, texts=texts)
    return clean_raw(raw, DocumentRules.from_config(PreprocessConfig(input=("x",)))).measured


@given(st.lists(st.text(alphabet="ab .{\n\u0301e…中J", max_size=40), max_size=8))
def test_documents_are_kept_dropped_or_empty(documents):
    every = [rule.name for rule in registry.RULES]
    block = block_of(documents, *every, "gopher_min_words=1", "gopher_min_stop_words=0")
    assert block.num_documents + sum(block.evidence.dropped.values()) == len(documents)
    alone = [block_of([each], "c4,fineweb").num_documents for each in documents]
    assert block_of(documents, "c4,fineweb").num_documents == sum(alone)


def test_the_page_shows_each_rule_by_itself(tmp_path):
    path = tmp_path / "a.jsonl"
    texts = ["Uses JavaScript a lot", "Two { words", "Fine text of words"]
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    config = PreprocessConfig(
        input=(str(path),), curation=("c4_max_javascript", "c4_max_braces", "gopher_max_hashes")
    )
    sample = read_sample(config, [FileInfo(str(path), path.stat().st_size)])
    shown = {rule.rule: rule for rule in left_out(config, sample.raw, sample.blocks, most=2)}
    assert {name: rule.number for name, rule in shown.items() if "_max_" in name} == {
        "gopher_max_hashes": 0, "c4_max_javascript": 1, "c4_max_braces": 1,
    }  # fmt: skip
    (example,) = shown["c4_max_braces"].examples
    assert (example.line, example.texts) == (2, {"document": "Two { words"})
    assert shown["c4_max_javascript"].examples[0].texts == {"line": "Uses JavaScript a lot"}
    assert shown["c4_max_braces"].key == "curation: c4_max_braces=0"


def test_a_line_may_be_of_two_rules():
    """It is counted under the first in the order of the registry."""
    text, _ = lines_of(["no javascript"])
    names = ("c4_min_line_words", "c4_max_javascript", "c4_max_braces")
    words, javascript, braces = (rule for rule in registry.RULES if rule.name in names)
    for rules in ([words, javascript, braces], [javascript, words]):
        first, *others = judge(text, rules)
        assert first.items.tolist() == [0]
        assert not any(len(verdict.items) for verdict in others)


@pytest.mark.parametrize("layout", ["documents", "one document"])
def test_off_leaves_blocks_as_they_are(layout):
    texts = Texts.of_rows([b"{ one\ntwo", b"# 1 #"], [1, 2])
    raw = RawBlock(source="x", index=0, texts=texts, layout=layout)
    config = PreprocessConfig(input=("x",))
    assert config.curation == ()
    assert make_block(raw, DocumentRules.from_config(config)).evidence.dropped == {}
