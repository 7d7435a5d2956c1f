"""Text shared with files to exclude is found as a plain search over lists of words finds it."""

import dataclasses
import json
import re
import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.beam.blobs import BlobStore
from pipeline.corpus.curation import exclusion
from pipeline.corpus.curation.exclusion import ExcludedTexts, Exclusion, find_shared
from pipeline.corpus.document_block import document_hashes, join_blocks
from pipeline.corpus.duplicates.folding import fold_texts
from pipeline.corpus.report import facts_of_block

LONG = "it was a bright cold day in april and the clocks were striking thirteen again"
EIGHT = "none of them knew the way to it"
FOUR = "unflinchingly bleak and desperate"
TWO = "very bad"


def excluded_of(*texts, files=("eval.tsv",)):
    folded = fold_texts(pa.array(texts, pa.string()), with_symbols=False)
    numbers = np.arange(len(texts))
    of_files = numbers * len(files) // len(texts)
    lengths = np.diff(folded.offsets)
    return ExcludedTexts.of_words(folded.words, lengths, numbers + 1, of_files, files)


@pytest.fixture
def exclude(tmp_path, block_of):
    """Excludes texts from documents of lines of sentences; returns the block."""

    def apply(documents, *texts, cuts=False, **files):
        store = BlobStore(str(tmp_path))
        excluded = excluded_of(*texts, **files)
        return Exclusion.of_texts(excluded, store, cuts=cuts).apply(block_of(*documents))

    return apply


@pytest.mark.parametrize(
    "sign",
    [
        ">",
        "|",
        "=",
        "$",
        "``",
        "😀",
        "❤️",
        "👍🏽",
        "[3]",
        "[a]",
        "&nbsp;",
        "&#160;",
        "©",
        "±",
        "-",
        "•",
    ],
)
def test_signs_between_words_hide_no_text(exclude, sign):
    words = LONG.split()
    for place in range(1, len(words)):
        text = " ".join([*words[:place], sign, *words[place:]])
        block = exclude([[[f"Before it. {text} and after."]], [["Another text."]]], LONG)
        assert block.num_documents == 1


def test_numbers_in_brackets_are_words_where_they_are_no_notes(exclude):
    text = "none of them knew the way in 1850 to it"
    assert exclude([[[text.replace("1850", "[1850]")]]], text).num_documents == 0
    assert exclude([[[text.replace("1850", "1851")]]], text).num_documents == 1


def words_of(text):
    """Folds as `fold_texts`, by another path: letters, marks and numbers are words."""
    text = re.sub(r"\[[0-9]{1,3}\]|&[a-zA-Z0-9#]{1,8};", " ", text)

    def folded(character):
        category = unicodedata.category(character)
        if category == "Cf" or "\ufe00" <= character <= "\ufe0f":
            return ""
        return character.lower() if category[0] in "LMN" else " "

    return "".join(map(folded, text)).split()


def search(document, texts):
    """Return the places of words that a document, lines of sentences, shares with texts."""
    units = []
    words = []
    shared = set()
    for line in document:
        start = len(words)
        for sentence in line:
            units.append((len(words), len(words) + len(words_of(sentence)), 4))
            words += words_of(sentence)
        units.append((start, len(words), 4))
    units.append((0, len(words), 1))
    for text in map(words_of, texts):
        size = min(len(text), 13)
        grams = [text[place : place + size] for place in range(len(text) - size + 1)]
        if size >= 8:
            places = range(len(words) - size + 1)
            found = [place for place in places if words[place : place + size] in grams]
        else:
            found = [a for a, b, least in units if least <= b - a and words[a:b] == text]
        shared.update(place + number for place in found for number in range(size))
    return shared


texts_of_words = st.lists(st.sampled_from(["a", "b", "É", "b,"]), min_size=0, max_size=16).map(
    " ".join
)
sentences = st.one_of(texts_of_words, st.sampled_from([LONG, EIGHT, FOUR, TWO]))
documents_of_lines = st.lists(
    st.lists(
        st.lists(sentences.map(lambda text: f"{text}."), min_size=1, max_size=3),
        min_size=1, max_size=3,
    ),
    min_size=1, max_size=4,
)  # fmt: skip


@given(documents_of_lines, st.lists(sentences, min_size=1, max_size=6))
@example([[[f"{TWO}."]], [[f"{TWO}.", "More."]]], [TWO])
def test_shared_words_are_those_of_a_plain_search(documents, texts):
    from tests.pipeline.corpus.conftest import make_block

    block = make_block(*documents)
    bounds = fold_texts(block.sentences).offsets[block.document_offsets]
    found = find_shared(block, excluded_of(*texts))
    starts, stops = found.starts.tolist(), found.stops.tolist()
    assert all(before <= after for before, after in zip(stops, starts[1:], strict=False))
    words = {place for a, b in zip(starts, stops, strict=True) for place in range(a, b)}
    expected = {
        int(bounds[number]) + place
        for number, document in enumerate(documents)
        for place in search(document, texts)
    }
    assert words == expected


@pytest.mark.parametrize(
    "planted",
    [
        [["Before it."], [f"{LONG}."]],
        [[LONG.upper().replace(" ", " -- ")]],
        [[f"«{LONG[:28]}"], [f"{LONG[28:]}»"]],  # over the end of a line
        [["It was a bright cold day in April,", "and the clocks were striking thirteen."]],
        [[f"As they said, {EIGHT.title()}; and so on."]],
        [["One.", "Unflinchingly bleak, and desperate!", "Two."]],
        [["One."], ["Unflinchingly bleak", "and desperate!"]],  # a line of two sentences
        [["Very bad."]],
    ],
)
def test_planted_texts_are_found_whatever_case_punctuation_and_lines(exclude, planted):
    clean = [["Nothing of it is here."], ["It was a bright cold day in April."], ["Very bad."]]
    block = exclude([clean, planted, clean], LONG, EIGHT, FOUR, TWO)
    assert block.evidence.dropped == {"excluded text": 1}
    assert [each.line for each in block.evidence.documents] == [2]
    assert facts_of_block(block).report.excluded == {"eval.tsv": 1}
    assert block.document_lines.tolist() == [1, 3]
    assert block.sentences.to_pylist() == [sentence for line in 2 * clean for sentence in line]


def test_text_without_any_of_it_is_the_same_block(exclude, block_of):
    documents = [[[f"{LONG[:40]}."]], [[f"{FOUR} too."], ["Very bad."]]]
    block = exclude(documents, LONG, FOUR, TWO)
    same = block_of(*documents)
    for field in dataclasses.fields(block):
        np.testing.assert_array_equal(getattr(block, field.name), getattr(same, field.name))


def test_cutting_keeps_the_other_paragraphs(exclude):
    documents = [
        [["Kept."], [f"Said he: {LONG}."], ["Kept too."]],
        [[LONG[:28]], [LONG[28:]], ["Only this."]],
        [[FOUR]],
        [["Untouched."]],
    ]
    block = exclude(documents, LONG, FOUR, cuts=True)
    assert block.sentences.to_pylist() == ["Kept.", "Kept too.", "Only this.", "Untouched."]
    assert block.evidence.dropped_lines == {"excluded text": 4}
    assert block.evidence.dropped == {"excluded text": 1}
    assert block.document_lines.tolist() == [1, 2, 4]
    assert [each.line for each in block.evidence.documents] == [3]


def test_what_is_shared_is_listed_with_both_places(exclude, block_of):
    documents = [[["A."], ["B.", f"Then {LONG},", "it says.", f"{FOUR}!"]], [[f"{TWO}!"]]]
    block = exclude(documents, FOUR, LONG, f"{LONG} x", TWO, files=("a.tsv", "b.tsv"))
    listed = [json.loads(shared.json_line()) for shared in block.evidence.shared]
    identities = [f"{each:016x}" for each in document_hashes(block_of(*documents))]
    assert [each.pop("identity") for each in listed] == [*identities[:1] * 2, identities[1]]
    assert listed == [
        {"source": "x", "line": 1, "words": 15, "text": f"{LONG},",
         "exclude": "a.tsv", "exclude_line": 2},
        {"source": "x", "line": 1, "words": 4, "text": f"{FOUR}!",
         "exclude": "a.tsv", "exclude_line": 1},
        {"source": "x", "line": 2, "words": 2, "text": "very bad!",
         "exclude": "b.tsv", "exclude_line": 4},
    ]  # fmt: skip
    assert facts_of_block(block).report.excluded == {"a.tsv": 1, "b.tsv": 1}
    assert len(join_blocks([block, block]).evidence.shared) == 6


def test_keys_are_found_among_many(block_of):
    """N-grams of all sizes."""
    source = np.random.default_rng(1)
    texts = [" ".join(map(str, source.integers(0, 10**6, 1 + n % 40))) for n in range(3000)]
    excluded = excluded_of(*texts)
    assert excluded.sizes.tolist() == [13, 12, 11, 10, 9, 8]
    assert len(excluded.grams.keys) > 30_000
    assert (np.diff(excluded.grams.keys.astype(object)) > 0).all()
    block = block_of(*([[text]] for text in texts))
    found = find_shared(block, excluded)
    sizes = [len(re.findall(r"\d+", text)) for text in texts]
    assert (found.stops - found.starts).tolist() == sizes
    assert found.texts.tolist() == [*range(3000)]


def test_a_worker_reads_the_texts_once(tmp_path, block_of, monkeypatch):
    stored = Exclusion.of_texts(excluded_of(LONG), BlobStore(str(tmp_path)), cuts=False)
    exclusion._read_texts.cache_clear()
    for copy in (stored, dataclasses.replace(stored, store=BlobStore(str(tmp_path)))):
        assert copy.apply(block_of([[LONG]])).num_documents == 0
    assert exclusion._read_texts.cache_info().misses == 1
