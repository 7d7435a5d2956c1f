"""Dropped documents and lines against brute force, however the corpus is cut and run."""

import io
import itertools
import json
import random

import apache_beam as beam
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.base.console import Console
from bert_tf.config.section import build_section
from bert_tf.config.sections import RunnerConfig, VocabConfig
from pipeline.beam.blobs import BlobStore
from pipeline.beam.files import read_shared_files, write_shared_file
from pipeline.beam.packing import pack
from pipeline.beam.runner import run_pipeline
from pipeline.corpus.document_block import document_hashes
from pipeline.corpus.duplicates.drop import DropDuplicates
from pipeline.corpus.duplicates.folding import fold_block
from pipeline.corpus.duplicates.near_duplicates import GRAM_WORDS
from pipeline.corpus.duplicates.occurrences import (
    EXACT_COPY,
    KEPT,
    OCCURRENCE,
    REASONS,
    NamedRows,
    choose_dropped,
    find_repeated,
    lines_of_block,
    merge_occurrences,
)
from pipeline.corpus.report import write_lists


def config_for(**values):
    return build_section(VocabConfig, {"input": ("x",), "output": "y", **values})


@pytest.fixture
def drop(block_of, tmp_path):
    """Run the transform, and give the documents that stay, all counts, and the report."""

    def run(documents, *, cuts=(), workers=1, **values):
        folder = tmp_path / f"work-{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        bounds = [0, *cuts, len(documents)]
        blocks = [
            block_of(*documents[begin:end], source="a", index=begin)
            for begin, end in itertools.pairwise(bounds)
            if begin < end
        ]
        store = BlobStore(str(folder))

        def build(pipeline):
            _ = (
                pipeline
                | beam.Create(blocks)
                | DropDuplicates(config_for(**values), store, str(folder))
                | beam.Map(_write_block, str(folder))
            )

        runner = build_section(RunnerConfig, {"workers": workers})
        run_pipeline(runner, build, console=Console(io.StringIO()), input_bytes=0)
        found = [json.loads(data) for data in read_shared_files(str(folder), "block-*")]
        texts = sorted(text for block in found for text in block["documents"])
        counts = {}
        for block in found:
            for reason, number in [*block["dropped"].items(), *block["dropped_lines"].items()]:
                counts[reason] = counts.get(reason, 0) + number
        write_lists(str(folder), folder)
        report = []
        if (folder / "duplicates.jsonl").exists():
            lines = (folder / "duplicates.jsonl").read_text().splitlines()
            report = [json.loads(line) for line in lines]
        return texts, counts, report

    return run


def _write_block(block, folder):
    content = {
        "documents": texts_of(block),
        "dropped": block.evidence.dropped,
        "dropped_lines": block.evidence.dropped_lines,
    }
    name = f"block-{block.source}-{block.index}"
    write_shared_file(folder, name, json.dumps(content).encode())


def texts_of(block):
    """Return the lines of each document, `|` between them; sentences are joined by spaces."""
    sentences = block.sentences.to_pylist()
    lines = [
        " ".join(sentences[begin:end])
        for begin, end in itertools.pairwise(block.line_offsets.tolist())
    ]
    bounds = block.lines_of_documents.tolist()
    return ["|".join(lines[begin:end]) for begin, end in itertools.pairwise(bounds)]


def documents_of(texts):
    return [[[line] for line in text.split("|")] for text in texts]


def test_nothing_is_dropped_unless_asked(drop):
    texts = ["a", "a", "A!", "b|b"]
    assert drop(documents_of(texts)) == (sorted(texts), {}, [])


def test_exact_copies_but_for_case_spacing_and_punctuation_go(drop):
    texts = ["One two.", "other", "one, two", "One two.", "three|four", "three four"]
    kept, counts, report = drop(documents_of(texts), cuts=[2, 3], duplicates="exact")
    assert len(kept) == 3
    folded = [text.lower().replace("|", " ").replace(",", "").rstrip(".") for text in kept]
    assert sorted(folded) == ["one two", "other", "three four"]
    assert counts == {"exact copy": 3}
    assert len(report) == 3
    for row in report:
        assert (row["reason"], row["similarity"], row["source"]) == ("exact copy", 1.0, "a")
        assert row["line"] != row["kept_line"] or row["kept_identity"] != row["identity"]


def words(source, count):
    return [f"w{source.randrange(10**6)}" for _ in range(count)]


def varied_corpus(seed):
    """Texts in families: a text, copies with some words changed, and exact copies."""
    source = random.Random(seed)
    texts = []
    for _ in range(12):
        original = words(source, 120)
        texts.append(" ".join(original))
        for _ in range(source.randrange(4)):
            changed = list(original)
            for _ in range(source.choice([1, 1, 40])):
                changed[source.randrange(len(changed))] = "changed"
            texts.append(" ".join(changed))
        if source.random() < 0.3:
            texts.append(texts[-1].upper())
            texts.append(texts[-2])
    source.shuffle(texts)
    return texts


def jaccard(left, right):
    def grams(text):
        split = text.lower().split()
        return {tuple(split[i : i + GRAM_WORDS]) for i in range(len(split) - GRAM_WORDS + 1)}

    return len(grams(left) & grams(right)) / len(grams(left) | grams(right))


def groups_by_brute_force(texts, threshold):
    """Connected components of the pairs whose exact similarity is at least the threshold; no pair
    may be so close to it that an estimate may fall on either side."""
    group = list(range(len(texts)))
    for i, j in itertools.combinations(range(len(texts)), 2):
        similarity = jaccard(texts[i], texts[j])
        assert abs(similarity - threshold) > 0.09, "choose another corpus"
        if similarity >= threshold:
            group = [group[i] if number == group[j] else number for number in group]
    members = {}
    for text, number in zip(texts, group, strict=True):
        members.setdefault(number, []).append(text)
    return list(members.values())


@pytest.mark.slow
def test_of_near_duplicates_one_stays_as_brute_force_finds_them(drop, block_of):
    texts = varied_corpus(0)
    kept, counts, report = drop(
        documents_of(texts), cuts=[5, 11], duplicates="near", near_duplicate_threshold=0.7
    )
    groups = groups_by_brute_force(texts, 0.7)
    identities = dict(
        zip(texts, document_hashes(block_of(*documents_of(texts))).tolist(), strict=True)
    )
    assert kept == sorted(min(group, key=identities.__getitem__) for group in groups)
    assert sum(counts.values()) == len(report) == len(texts) - len(kept)
    distinct = len({text.lower() for text in texts})
    assert counts == {"exact copy": len(texts) - distinct, "near duplicate": distinct - len(kept)}
    by_identity = {f"{identity:016x}": text for text, identity in identities.items()}
    for row in report:
        similarity = jaccard(by_identity[row["identity"]], by_identity[row["kept_identity"]])
        assert row["similarity"] == pytest.approx(similarity, abs=0.15)


@pytest.mark.slow  # starts worker processes
@pytest.mark.usefixtures("forked_workers")
def test_cuts_order_and_workers_do_not_matter(drop):
    source = random.Random(5)
    texts = varied_corpus(7)
    texts = [text.replace(" ", "|", 3) for text in texts] + ["same|line"] * 3
    values = {
        "duplicates": "near",
        "near_duplicate_threshold": 0.7,
        "duplicate_lines": "drop",
    }
    kept, counts, report = drop(documents_of(texts), **values)
    assert {"exact copy", "near duplicate"} <= set(counts)
    source.shuffle(texts)
    cuts = sorted(source.sample(range(1, len(texts)), 6))
    found = drop(documents_of(texts), cuts=cuts, workers=2, **values)
    assert found[:2] == (kept, counts)
    copies, found_copies = (
        sorted((row["identity"], row["kept_identity"]) for row in rows)
        for rows in (report, found[2])
    )
    assert found_copies == copies


def test_of_repeated_lines_the_first_of_the_lowest_document_stays(drop, block_of):
    texts = ["Menu|first text|menu!", "menu|second text", "MENU", "third|Third.|***|***"]
    kept, counts, _ = drop(documents_of(texts), cuts=[1, 2], duplicate_lines="drop")
    identities = document_hashes(block_of(*documents_of(texts)))
    first = int(np.argmin(np.where([True, True, True, False], identities, 2**64 - 1)))
    expected = ["first text", "second text", None, "third|***"]
    expected[first] = {0: "Menu|first text", 1: "menu|second text", 2: "MENU"}[first]
    assert kept == sorted(filter(None, expected))
    emptied = {"only repeated lines": 1} if first != 2 else {}
    assert counts == {"repeated line": 5, **emptied}


def test_lines_of_dropped_documents_are_not_the_first(drop):
    texts = ["one|two", "One|two", "ONE|TWO", "two|else"]
    kept, counts, _ = drop(documents_of(texts), duplicates="exact", duplicate_lines="drop")
    lines = [line.lower() for text in kept for line in text.split("|")]
    assert sorted(lines) == ["else", "one", "two"]
    assert counts == {"exact copy": 2, "repeated line": 1}


@given(
    st.lists(st.sampled_from(["a", "A", "a.", "b", "B c", "b|c", "!", "?"]), max_size=12),
    st.randoms(use_true_random=False),
)
def test_choosing_among_equals_is_brute_force_in_any_order(block_of, texts, source):
    blocks, start = [], 0
    while start < len(texts):
        stop = source.randint(start + 1, len(texts))
        documents = documents_of(texts[start:stop])
        blocks.append(block_of(*documents, source=source.choice("ab"), index=start))
        start = stop
    parts = []
    for block in blocks:
        rows = np.zeros(block.num_documents, OCCURRENCE)
        rows["key"] = fold_block(block).document_keys
        rows["identity"] = document_hashes(block)
        rows["document"] = np.arange(len(rows))
        parts.append(b"".join(pack(NamedRows([(block.source, block.index)], rows))))
    source.shuffle(parts)
    occurrences = merge_occurrences(parts)
    nothing = NamedRows([], np.empty(0, KEPT))
    dropped = choose_dropped(occurrences, nothing, nothing, copies=True)
    assert {REASONS[reason] for reason in dropped.reasons} <= {EXACT_COPY}
    assert len(occurrences.rows) == len(texts)
    keys = set(occurrences.rows["key"].tolist())
    assert len(dropped.rows) == len(texts) - len(keys)
    for row, identity in zip(dropped.rows, dropped.kept["identity"], strict=True):
        equals = occurrences.rows[occurrences.rows["key"] == row["key"]]
        assert identity == equals["identity"].min()
    places = dropped.rows[["block", "document"]].tolist()
    assert len(set(places)) == len(places)


@given(
    st.lists(st.lists(st.sampled_from("abcAB"), min_size=1, max_size=4), max_size=8),
    st.randoms(use_true_random=False),
)
def test_choosing_among_equal_lines_is_brute_force_in_any_order(block_of, documents, source):
    blocks, start = [], 0
    while start < len(documents):
        stop = source.randint(start + 1, len(documents))
        texts = [[[line] for line in document] for document in documents[start:stop]]
        blocks.append(block_of(*texts, source="x", index=start))
        start = stop
    parts, places = [], {}
    for block in blocks:
        identities = document_hashes(block)
        rows = lines_of_block(block, fold_block(block).line_keys, identities)
        parts.append((("x", block.index), rows.tobytes()))
        for row in rows:
            place = (int(row["identity"]), int(row["number"]), block.index, int(row["line"]))
            places.setdefault(int(row["key"]), []).append(place)
    source.shuffle(parts)
    repeated = {
        (block[1], line) for block, lines in find_repeated(parts) for line in lines.tolist()
    }
    expected = {place[2:] for equal in places.values() for place in sorted(equal)[1:]}
    assert repeated == expected
