"""Dropped documents with their rules, and samples that do not depend on blocks and their order."""

import json
from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.config.sections import PreprocessConfig
from pipeline.corpus.documents import DocumentRules, make_block
from pipeline.corpus.evidence import (
    MOST_SAMPLES,
    SAMPLE_CHARACTERS,
    Sample,
    merge_samples,
    ranked,
)
from pipeline.corpus.raw_block import RawBlock, Texts
from pipeline.corpus.report import facts_of_block

RULES = ("gopher_min_words=3", "c4_max_javascript", "c4_max_braces")
TEXTS = [
    "Fine text of words.",
    "Two { words",
    "short",
    "",
    "A JavaScript line\nand a line that stays.",
    "Fine text of numbers 1 2 3 4 5.",
]


def block_of(texts, first_line=1, source="a.jsonl"):
    config = PreprocessConfig(input=("x",), curation=RULES, min_letter_fraction=0.75)
    rows = Texts.of_rows(
        [text.encode() for text in texts], [*range(first_line, len(texts) + first_line)]
    )
    return make_block(
        RawBlock(source=source, index=first_line, texts=rows), DocumentRules.from_config(config)
    )


def test_every_dropped_document_is_listed_with_its_rule_and_value():
    block = block_of(TEXTS)
    ((_, (first, lines)),) = facts_of_block(block).lists
    assert first == 2
    assert [json.loads(line) for line in lines.splitlines()] == [
        {"source": "a.jsonl", "line": 2, "rule": "gopher_min_words", "value": 2},
        {"source": "a.jsonl", "line": 3, "rule": "gopher_min_words", "value": 1},
        {"source": "a.jsonl", "line": 4, "rule": "empty document"},
        {"source": "a.jsonl", "line": 6, "rule": "too few letters", "value": 0.73913},
    ]  # fmt: skip
    assert Counter(each.rule for each in block.evidence.documents) == block.evidence.dropped


def test_samples_begin_with_the_text_that_was_dropped():
    (line,) = block_of(TEXTS).evidence.samples["c4_max_javascript"]
    assert line[1:] == ("a.jsonl", 5, 1.0, "A JavaScript line")
    (long,) = block_of(["{ é" * 100 + " a few words."]).evidence.samples["c4_max_braces"]
    assert long.text == ("{ é" * 100)[:SAMPLE_CHARACTERS]


@given(st.data())
def test_samples_are_the_same_from_any_blocks_in_any_order(data):
    texts = data.draw(st.lists(st.sampled_from([f"{{ {n} words are here" for n in range(30)])))
    whole = merge_samples([block_of(texts).evidence.samples])
    assert len(whole.get("c4_max_braces", ())) == min(len(set(texts)), MOST_SAMPLES)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(texts)), max_size=4)))
    blocks = [
        block_of(texts[begin:end], begin + 1).evidence.samples
        for begin, end in zip([0, *cuts], [*cuts, len(texts)], strict=True)
    ]
    assert merge_samples(data.draw(st.permutations(blocks))) == whole
    assert merge_samples([merge_samples(blocks[:2]), *blocks[2:]]) == whole


def test_a_text_has_one_hash_wherever_it_is():
    """Composition and cleaning of the texts around it do not matter."""
    text = "{ one\n\ntwo three four."
    around = ["", "e\u0301 plain", f"lots of\n\n\nlines\n{text}"]
    hashes = {
        sample.hash
        for texts in ([text], [*around[:2], text], [text, around[2]])
        for sample in block_of(texts).evidence.samples["c4_max_braces"]
        if sample.text.startswith("{ one two")
    }
    assert len(hashes) == 1


def test_samples_keep_the_smallest_hashes():
    numbers = np.random.default_rng(0).permutation(100).tolist()
    samples = [Sample(number, "a", number, 0.0, str(number)) for number in numbers]
    merged = merge_samples([{"rule": samples[:50]}, {"rule": samples[50:]}])
    assert [sample.hash for sample in merged["rule"]] == [*range(MOST_SAMPLES)]


@given(st.permutations([("a", 1), ("b", 1), ("c", 3), ("d", 0)]))
def test_the_order_in_which_workers_count_does_not_matter(counts):
    assert list(ranked(dict(counts)).items()) == [("c", 3), ("a", 1), ("b", 1), ("d", 0)]
