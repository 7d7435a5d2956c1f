"""Verdicts of curation rules against datatrove's filters with their own words and sentences.

Theirs, which curation_verdicts.py wrote, are kept in tests/golden; `make parity` makes them anew.
"""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from curation_verdicts import FILTERS, documents

from bert_tf.config.sections import PreprocessConfig
from pipeline.corpus.curation.rule import judge
from pipeline.corpus.documents import DocumentRules, clean_raw
from pipeline.corpus.raw_block import RawBlock, Texts

GOLDEN = Path(__file__).parents[1] / "golden"
LIVE = os.environ.get("BERT_PARITY_DIR")


@pytest.fixture(scope="module", params=["golden", "live"])
def expected(request):
    """Reasons by group and document, from datatrove."""
    if request.param == "live" and LIVE is None:
        pytest.skip("BERT_PARITY_DIR is not set: `make parity` writes what it names")
    folder = GOLDEN if request.param == "golden" else Path(LIVE)
    return json.loads((folder / "curation_verdicts.json").read_text())


@pytest.mark.parametrize("group", FILTERS)
def test_the_verdict_on_every_document_is_datatrove_s(expected, group):
    texts = [text.encode() for text in documents()]
    raw = RawBlock(source="x", index=0, texts=Texts.of_rows(texts, [*range(1, len(texts) + 1)]))
    # Without a splitter hard-wrapped lines stay lines, as for datatrove.
    config = PreprocessConfig(input=("x",), curation=(group,), sentence_splitter="none")
    rules = DocumentRules.from_config(config)
    verdicts = np.full(len(texts), -1)
    for number, verdict in enumerate(judge(clean_raw(raw, rules).measured[0], rules.curation)):
        if not verdict.rule.of_lines:
            verdicts[verdict.items] = number
    assert 0.05 < (verdicts >= 0).mean() < 0.95
    wrong = [
        (number, theirs, rules.curation[ours].name if ours >= 0 else None)
        for number, (theirs, ours) in enumerate(zip(expected[group], verdicts, strict=True))
        if (theirs is None) != (ours < 0)
    ]
    assert not wrong
