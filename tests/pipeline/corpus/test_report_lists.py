"""Lists of several parts are whole and in order, no matter which block each line comes from."""

import io
import json
import random

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest

from bert_tf.base.console import Console
from bert_tf.config.section import build_section
from bert_tf.config.sections import PreprocessConfig, RunnerConfig
from pipeline.beam.blobs import BlobStore
from pipeline.beam.runner import run_pipeline
from pipeline.corpus.curation.exclusion import ExcludedTexts, Exclusion
from pipeline.corpus.documents import DocumentRules, make_block
from pipeline.corpus.duplicates.folding import fold_texts
from pipeline.corpus.evidence import MOST_SAMPLES, merge_samples
from pipeline.corpus.raw_block import RawBlock, Texts
from pipeline.corpus.report import (
    DROPPED,
    REJECTS,
    SHARED,
    ReportCorpus,
    facts_of_block,
    read_samples,
    write_lists,
)

EXCLUDED = "all of these eight words are in it"


@pytest.fixture
def rules(tmp_path):
    folded = fold_texts(pa.array([EXCLUDED]))
    texts = ExcludedTexts.of_words(
        folded.words, np.diff(folded.offsets), np.ones(1, np.int64), np.zeros(1, np.int64), ["e"]
    )
    exclusion = Exclusion.of_texts(texts, BlobStore(str(tmp_path)), cuts=False)
    config = PreprocessConfig(input=("x",), curation=("c4_max_braces",))
    return DocumentRules.from_config(config, exclusion)


@pytest.mark.slow  # runs a pipeline
def test_lists_of_many_parts_are_whole_and_in_order(tmp_path, rules):
    source = random.Random(0)
    blocks, places = [], []
    for path in ("b.jsonl", "a.jsonl"):
        lines = sorted(source.sample(range(1, 12 << 20), 200))
        places += [(path, line, number % 4) for number, line in enumerate(lines)]
        for begin in range(0, len(lines), 4):
            brace = f"The brace {{ {path} {begin} is here.".encode()
            texts = [brace, b"bad \xff", EXCLUDED.encode(), b"It stays."]
            rows = Texts.of_rows(texts, lines[begin : begin + 4])
            blocks.append(make_block(RawBlock(source=path, index=begin, texts=rows), rules))
    source.shuffle(blocks)
    folder = tmp_path / "parts"
    folder.mkdir()

    def build(pipeline):
        facts = pipeline | beam.Create(blocks) | beam.Map(facts_of_block)
        _ = facts | ReportCorpus(str(folder))

    runner = build_section(RunnerConfig, {"workers": 1})
    run_pipeline(runner, build, console=Console(io.StringIO()), input_bytes=1)
    lengths = write_lists(str(folder), tmp_path)
    for parts, name, texts in (
        (REJECTS, "rejects", {1}),
        (DROPPED, "dropped", {0, 2}),
        (SHARED, "excluded", {2}),
    ):
        assert len(list(folder.glob(f"{parts}-*"))) > 20
        assert lengths[parts] == 100 * len(texts)
        found = map(json.loads, (tmp_path / f"{name}.jsonl").read_text().splitlines())
        expected = sorted(place[:2] for place in places if place[2] in texts)
        assert [(each["source"], each["line"]) for each in found] == expected
    samples = read_samples(str(folder))
    assert samples == merge_samples(block.evidence.samples for block in blocks)
    assert len(samples["c4_max_braces"]) == MOST_SAMPLES
