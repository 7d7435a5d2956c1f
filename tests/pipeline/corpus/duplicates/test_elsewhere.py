"""Documents with near duplicates in another corpus are dropped, against brute force."""

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
from bert_tf.base.errors import ConfigError, InputError, UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import PreprocessConfig, RunnerConfig
from pipeline.beam.blobs import BlobStore
from pipeline.beam.files import match_files
from pipeline.beam.runner import run_pipeline
from pipeline.corpus.duplicates import elsewhere
from pipeline.corpus.duplicates.drop import DropDuplicates
from pipeline.corpus.duplicates.elsewhere import match_other, other_lines, pair_across
from pipeline.corpus.duplicates.near_duplicates import BAND, GRAM_WORDS, PAIR
from pipeline.corpus.duplicates.signature_files import SIGNATURES_FILE, write_signatures
from pipeline.corpus.read import ReadDocuments
from pipeline.corpus.report import ReportCorpus, facts_of_block, read_report, write_lists

THRESHOLD = 0.7


@pytest.mark.parametrize("together", [1, 250_000])
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=30),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=30),
)
def test_candidates_are_all_pairs_across_with_an_equal_band(together, own, other):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(elsewhere, "_ROWS_TOGETHER", together)
        found = list(pair_across(np.array(own, BAND), np.array(other, BAND)))
    pairs = np.concatenate([np.empty(0, PAIR), *found]).tolist()
    assert set(pairs) == {
        (a, b) for (left, a), (right, b) in itertools.product(own, other) if left == right
    }


def test_of_a_large_group_the_first_the_neighbors_and_the_equal_one_are_compared():
    other = np.array([(7, key) for key in range(0, 2000, 2)], BAND)
    (pairs,) = pair_across(np.array([(7, 501), (7, 600), (7, 5000)], BAND), other)
    assert pairs.tolist() == [
        *[(501, key) for key in (0, 500, 502)],
        *[(600, key) for key in (0, 598, 600)],
        *[(5000, key) for key in (0, 1998)],
    ]


def words(source, count):
    return [f"w{source.randrange(10**6)}" for _ in range(count)]


def changed(source, text, number):
    """Return a text with some words in a row replaced, so that few 5-grams change."""
    split = text.split()
    begin = source.randrange(len(split) - number)
    split[begin : begin + number] = words(source, number)
    return " ".join(split)


def corpora(seed):
    """Texts, and those of another corpus: copies, near duplicates, weak ones, unrelated ones."""
    source = random.Random(seed)
    there = [" ".join(words(source, 120)) for _ in range(12)]
    texts = [" ".join(words(source, 120)) for _ in range(6)]
    texts += [changed(source, text, 4) for text in there[:5]]
    texts += [changed(source, text, 60) for text in there[3:8]]
    texts += [there[8].upper(), there[8], f"{there[9]} !", texts[0]]
    # Resembles a text that goes, but nothing of the other corpus enough.
    split = there[10].split()
    chain = [*split[:60], *words(source, 10), *split[70:]]
    texts += [" ".join(chain), " ".join(chain[25:])]
    source.shuffle(texts)
    return texts, there


def grams(text):
    split = text.lower().replace(" !", "").split()
    return {tuple(split[i : i + GRAM_WORDS]) for i in range(len(split) - GRAM_WORDS + 1)}


def jaccard(left, right):
    return len(grams(left) & grams(right)) / len(grams(left) | grams(right))


@pytest.fixture
def preprocess(tmp_path):
    """Read and drop; give the texts that stay, counts, the list, and the bytes of signatures."""

    def run(texts, against, *, workers=1, pieces=1, name="input.jsonl", **values):
        folder = tmp_path / f"work-{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        path = tmp_path / name
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        config = build_section(
            PreprocessConfig,
            {
                "input": (str(path),),
                "vocab": "v",
                "output": "y",
                "sentence_splitter": "none",
                "duplicates_against": tuple(against),
                "near_duplicate_threshold": THRESHOLD,
                "block_megabytes": 100 / pieces,
                **values,
            },
        )
        files = match_files(config.input)
        other = match_other(config, files)
        store = BlobStore(str(folder))

        def build(pipeline):
            blocks = pipeline | ReadDocuments(config, files, {})
            blocks = blocks | DropDuplicates(config, store, str(folder), other)
            _ = blocks | beam.Map(facts_of_block) | ReportCorpus(str(folder))

        runner = build_section(RunnerConfig, {"workers": workers})
        run_pipeline(runner, build, console=Console(io.StringIO()), input_bytes=0)
        counts = {name: n for name, n in read_report(str(folder)).dropped.items() if n}
        write_lists(str(folder), folder)
        listed = folder / "duplicates.jsonl"
        lines = listed.read_text().splitlines() if listed.exists() else []
        rows = [json.loads(line) for line in lines]
        signatures = b""
        if config.write_signatures:
            write_signatures(str(folder), folder / SIGNATURES_FILE)
            signatures = (folder / SIGNATURES_FILE).read_bytes()
        line = other_lines(other, str(folder))[0] if other.paths else ""
        return counts, rows, signatures, line

    return run


def write_corpus(path, texts):
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return str(path)


def expected_drops(texts, there):
    """Lines of texts that go, with the line and similarity of the nearest text there."""
    found = {}
    for number, text in enumerate(texts, 1):
        similarities = [jaccard(text, other) for other in there]
        assert all(abs(each - THRESHOLD) > 0.05 for each in similarities), "choose another seed"
        if max(similarities) >= THRESHOLD:
            found[number] = (1 + int(np.argmax(similarities)), max(similarities))
    return found


@pytest.mark.parametrize("seed", [0, 1])
def test_near_duplicates_of_another_corpus_go_as_exact_similarity_says(preprocess, tmp_path, seed):
    texts, there = corpora(seed)
    against = write_corpus(tmp_path / "there.jsonl", there)
    counts, rows, _, line = preprocess(texts, [against])
    expected = expected_drops(texts, there)
    assert {row["line"] for row in rows} == set(expected)
    assert counts == {"duplicate elsewhere": len(expected)}
    for row in rows:
        kept_line, similarity = expected[row["line"]]
        assert row["reason"] == "duplicate elsewhere"
        assert (row["kept_source"], row["kept_line"]) == (against, kept_line)
        assert row["similarity"] == pytest.approx(similarity, abs=0.1)
    assert line == "compared with 12 documents of --duplicates-against"


def test_signatures_of_a_former_run_stand_for_its_documents(preprocess, tmp_path):
    texts, there = corpora(2)
    against = write_corpus(tmp_path / "there.jsonl", there)
    both = {"duplicates": "near", "write_signatures": True}
    expected = preprocess(texts, [against], **both)
    assert {"duplicate elsewhere", "exact copy"} <= set(expected[0])
    of_there = {**both, "name": "there.jsonl"}
    _, _, signatures, _ = preprocess(there, [], **of_there)
    assert preprocess(there, [], pieces=1000, **of_there)[2] == signatures
    path = tmp_path / "former.signatures"
    path.write_bytes(signatures)
    found = preprocess(texts, [str(path)], pieces=1000, **both)
    assert (found[0], found[1], found[3]) == (expected[0], expected[1], expected[3])
    with pytest.raises(
        UsageError, match=r"former\.signatures has the signatures of .*there\.jsonl"
    ):
        preprocess(there, [str(path)], name="there.jsonl")
    # Only what stayed is in the signatures: the run after it finds nothing else there.
    path.write_bytes(expected[2])
    again, _, _, line = preprocess(texts, [str(path)], name="copy.jsonl")
    stayed = len(texts) - sum(expected[0].values())
    assert line == f"compared with {stayed} documents of --duplicates-against"
    assert again["duplicate elsewhere"] >= stayed


@pytest.mark.slow  # starts worker processes
@pytest.mark.usefixtures("forked_workers")
def test_workers_do_not_matter(preprocess, tmp_path):
    texts, there = corpora(3)
    against = write_corpus(tmp_path / "there.jsonl", there)
    values = {"duplicates": "near", "write_signatures": True}
    expected = preprocess(texts, [against], **values)
    assert preprocess(texts, [against], workers=2, pieces=1000, **values) == expected


def test_what_cannot_be_compared_with_is_refused(tmp_path):
    path = write_corpus(tmp_path / "a.jsonl", ["text"])
    base = {"input": (path,), "vocab": "v", "output": "y"}

    def match(*against):
        config = build_section(PreprocessConfig, {**base, "duplicates_against": against})
        return match_other(config, match_files(config.input))

    with pytest.raises(UsageError, match=r"a\.jsonl is also a file of --input"):
        match(path)
    with pytest.raises(UsageError, match=r"none\.signatures"):
        match(str(tmp_path / "none.signatures"))
    (tmp_path / "b.signatures").write_bytes(b"no signatures")
    with pytest.raises(InputError, match=r"b\.signatures"):
        other_lines(match(str(tmp_path / "b.signatures")), str(tmp_path))


def test_signatures_are_those_of_the_documents_in_the_records():
    values = {"input": ("a.jsonl",), "vocab": "v", "output": "y", "write_signatures": True}
    assert build_section(PreprocessConfig, values).keeps_signatures
    with pytest.raises(ConfigError, match=r"write_signatures: describes .* duplicate_lines=drop"):
        build_section(PreprocessConfig, {**values, "duplicate_lines": "drop"})
