"""Measures of documents against plain definitions in Python."""

from collections import Counter

import numpy as np
import pytest

from bert_tf.config.sections import PreprocessConfig
from pipeline.beam.files import FileInfo
from pipeline.corpus.duplicates.folding import fold_block
from pipeline.report.corpus import survey
from pipeline.report.corpus.page import corpus_at
from pipeline.report.corpus.sample import read_sample

WORDS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa")
WORDS += ("lambda", "mu", "nu", "xi")
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS[:10], "la", "##mb", "##da", "[", "]"]


@pytest.fixture(scope="module")
def documents():
    drawn = np.random.default_rng(3)
    found = [
        [" ".join(drawn.choice(WORDS, drawn.integers(1, 9))) for _ in range(6)] for _ in "a" * 40
    ]
    long = " ".join(drawn.choice(WORDS, 400))
    found += [[long], [long + " beta"], [line.upper() for line in found[7]], found[7]]
    return found


@pytest.fixture(scope="module")
def blocks(documents, tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "a.txt"
    path.write_text("\n\n".join("\n".join(lines) for lines in documents) + "\n")
    corpus = corpus_at(PreprocessConfig(input=(str(path),)))
    return read_sample(corpus.config, [FileInfo(str(path), path.stat().st_size)]).blocks


def test_lengths(blocks, documents):
    found = survey.lengths_of(blocks)
    assert found["sentences of a document"].tolist() == [len(lines) for lines in documents]
    words = [sum(len(line.split()) for line in lines) for lines in documents]
    assert found["words of a document"].tolist() == words
    lines = [line for lines in documents for line in lines]
    assert found["words of a sentence"].tolist() == [len(line.split()) for line in lines]
    characters = [sum(map(len, lines)) for lines in documents]
    assert found["characters of a document"].tolist() == characters


def test_copies_are_found_whatever_their_case(blocks, documents):
    folded = list(map(fold_block, blocks))
    keys = [each.document_keys for each in folded]
    offsets = [block.document_offsets for block in blocks]
    copies = survey.find_copies(blocks, keys, offsets, most=5)
    assert (copies.number, copies.surplus) == (44, 2)
    ((text, count, _),) = copies.most
    assert (count, text) == (3, " ".join(documents[7]))
    keys = [each.line_keys for each in folded]
    offsets = [block.line_offsets for block in blocks]
    lines = survey.find_copies(blocks, keys, offsets, most=3)
    counts = Counter(line.lower() for lines in documents for line in lines)
    assert lines.surplus == sum(counts.values()) - len(counts)
    assert [count for _, count, _ in lines.most] == [count for _, count in counts.most_common(3)]


def test_near_copies_are_pairs_of_distinct_documents(blocks, monkeypatch):
    folded = list(map(fold_block, blocks))
    near = survey.similar_documents(blocks, folded, threshold=0.8, most=5)
    assert (near.compared, near.similar) == (42, 2)
    ((similarity, one, another),) = near.pairs
    assert similarity > 0.95
    assert one.split(": ")[1][:50] == another.split(": ")[1][:50]
    monkeypatch.setattr(survey, "MOST_COMPARED", 7)
    few = survey.similar_documents(blocks, folded, threshold=0.8, most=5)
    assert (few.compared, few.similar) == (7, 0)


def test_unknown_words(blocks, documents):
    found = survey.unknown_words(blocks, VOCAB, lowercase=True, most=9)
    words = [word for lines in documents for line in lines for word in line.lower().split()]
    unknown = Counter(word for word in words if word in ("mu", "nu", "xi"))
    assert found.words == len(words)
    assert dict(found.most) == unknown
    assert found.fraction == pytest.approx(sum(unknown.values()) / len(words))
    tokens = len(words) + 2 * words.count("lambda")
    assert found.tokens_per_word == pytest.approx(tokens / len(words))
