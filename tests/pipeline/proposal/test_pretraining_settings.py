"""The proposal of `init pretrain` follows from the inputs, its comments from its choices."""

from pathlib import Path

import numpy as np
import pytest

from pipeline.proposal.corpus_facts import CorpusFacts
from pipeline.proposal.pretraining import (
    given_settings,
    propose_settings,
    setting_reasons,
)
from pipeline.report.corpus.sample import CorpusSample


def proposed(tokens, *assignments, vocab_size=4_000, documents=8):
    facts = CorpusFacts(
        sample=CorpusSample(raw=(), blocks=(), is_whole=False, note=""),
        scale=tokens / 1_000,
        about="about ",
        document_words=np.full(documents, 100),
        document_sentences=np.full(documents, 5),
        duplicates=0,
        similar=0.0,
        letters={},
        vocab_size=vocab_size,
        sample_tokens=1_000,
    )
    given = given_settings("a.txt", Path("a.yaml"), assignments)
    settings, recipe = propose_settings(given, {}, facts)
    return settings, setting_reasons(facts, recipe, settings)


def test_steps_and_evaluations_follow_from_what_is_set():
    free = proposed(1e8, "train.size=tiny")[0]["train"]
    large = proposed(1e8, "train.size=tiny", "train.batch_size=256")[0]["train"]
    assert large["steps"] * 256 == pytest.approx(free["steps"] * free["batch_size"], rel=0.05)
    short = proposed(1e8, "train.size=tiny", "train.steps=500")[0]["train"]
    assert (short["steps"], short["eval_every"]) == (500, 25)


def test_a_single_document_has_no_random_next_sentence():
    settings, reasons = proposed(1_000, documents=1)
    assert settings["preprocess"]["pair_task"] == "none"
    assert reasons["preprocess"]["pair_task"] == "random sentences need another document"


def test_comments_say_why():
    _, little = proposed(1_000)
    assert "the smallest" in little["vocab"]["vocab_size"]
    assert "too little text" in little["train"]["size"]
    assert "smaller for little text" in little["train"]["batch_size"]
    _, much = proposed(1e11, "train.size=large", vocab_size=30_000)
    assert much["vocab"]["vocab_size"].startswith("95% of the entries")
    assert much["train"]["batch_size"] == "for models 1024 wide"
    assert much["train"]["steps"].startswith("as many as BERT")
    _, other = proposed(1e8, "train.size=mini", "vocab.vocab_size=30000")
    _, same = proposed(1e8, "train.size=mini", vocab_size=30_000)
    assert other["train"]["size"] == same["train"]["size"], "the shape is with the vocabulary set"
