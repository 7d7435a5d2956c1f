"""Measurements of a sample: scripts, lengths, copies, repeated lines, unknown words."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pyarrow.compute as pc

from bert_tf.data.text.casing import Lowercase
from bert_tf.data.text.host_wordpiece import HostTokenizer
from pipeline.corpus.document_block import DocumentBlock, offsets_and_data
from pipeline.corpus.documents import TOO_FEW_CHARACTERS, TOO_FEW_WORDS, measure_documents
from pipeline.corpus.duplicates.folding import FoldedBlock
from pipeline.corpus.duplicates.near_duplicates import (
    BAND,
    PAIR,
    band_keys,
    choose_bands,
    estimated_similarity,
    pair_candidates,
    signatures_of,
)
from pipeline.report.corpus.scripts import count_scripts
from pipeline.vocabulary.word_counter import WordCounter

_LONGEST_WORD = 100  # characters
_SHOWN_SENTENCES = 8  # of a document
MOST_COMPARED = 50_000  # documents, for near duplicates


@dataclasses.dataclass(frozen=True, kw_only=True)
class Copies:
    """Counts of documents or lines that repeat an earlier one.

    Case, spacing and punctuation may differ.

    Attributes:
        number: of all documents or lines.
        surplus: number of those that repeat an earlier one.
        most: the most frequent texts, the number of each, and the place of its first occurrence.
    """

    number: int
    surplus: int
    most: Sequence[tuple[str, int, str]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class NearCopies:
    """Documents that are nearly the same.

    Attributes:
        compared: distinct documents.
        similar: number of those that are near another one.
        pairs: the most similar: similarity, then place and beginning of both.
    """

    compared: int
    similar: int
    pairs: Sequence[tuple[float, str, str]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Unknown:
    """Words that the vocabulary does not cover.

    Attributes:
        words: number of all words of the sample.
        fraction: of the words that become [UNK].
        tokens_per_word: mean over all words.
        most: the most frequent unknown words, and the number of each.
    """

    words: int
    fraction: float
    tokens_per_word: float
    most: Sequence[tuple[str, int]]


def letters_by_script(blocks: Sequence[DocumentBlock]) -> dict[str, int]:
    """Count the letters of all sentences by script, the most frequent first."""
    bounds = (offsets_and_data(block.sentences) for block in blocks)
    return count_scripts(
        data[offsets[0] : offsets[-1]].tobytes().decode("utf-8") for offsets, data in bounds
    )


def lengths_of(blocks: Sequence[DocumentBlock]) -> dict[str, np.ndarray]:
    """Return sizes of documents and sentences by unit, int64; words are separated by spaces."""
    by_name: dict[str, list[np.ndarray]] = {}
    for block in blocks:
        sizes = measure_documents(block)
        spaces = pc.count_substring(block.sentences, " ").to_numpy(zero_copy_only=False)
        for name, lengths in (
            ("words of a document", sizes[TOO_FEW_WORDS]),
            ("characters of a document", sizes[TOO_FEW_CHARACTERS]),
            ("sentences of a document", np.diff(block.document_offsets)),
            ("words of a sentence", spaces.astype(np.int64) + 1),
        ):
            by_name.setdefault(name, []).append(lengths)
    return {name: np.concatenate(parts) for name, parts in by_name.items()}


def similar_documents(
    blocks: Sequence[DocumentBlock],
    folded: Sequence[FoldedBlock],
    *,
    threshold: float,
    most: int,
) -> NearCopies:
    """Find documents that `--duplicates near` would find similar; equal ones count once.

    Signatures and bands are those of the job; see `near_duplicates.py` of
    `pipeline/corpus/duplicates`. Needs a kilobyte of memory for each of at most MOST_COMPARED
    documents.

    Args:
        blocks: of the sample.
        folded: the words and keys of each block.
        threshold: least Jaccard similarity.
        most: pairs to return.

    Returns:
        The counts, and the most similar pairs.
    """
    keys = np.concatenate([block.document_keys for block in folded])
    # The first of equal documents, in the order of the corpus.
    firsts = np.sort(np.unique(keys, return_index=True)[1])[:MOST_COMPARED]
    begin = 0
    signatures = []
    for block in folded:
        end = begin + len(block.document_keys)
        documents = firsts[(firsts >= begin) & (firsts < end)] - begin
        signatures.append(signatures_of(block.words, block.document_offsets, documents))
        begin = end
    minima = np.concatenate([minima_of_block for minima_of_block, _ in signatures])
    sketches = np.concatenate([sketches_of_block for _, sketches_of_block in signatures])
    bands, rows = choose_bands(threshold)
    rows_of_bands = np.empty(len(firsts) * bands, BAND)
    rows_of_bands["band"] = band_keys(minima, bands, rows).ravel()
    rows_of_bands["key"] = np.repeat(np.arange(len(firsts)), bands)
    pairs = np.concatenate([np.empty(0, PAIR), *pair_candidates(rows_of_bands)])
    left = pairs["left"].astype(np.int64)
    right = pairs["right"].astype(np.int64)
    similarity = estimated_similarity(sketches[left], sketches[right])
    is_similar = similarity >= threshold
    left = left[is_similar]
    right = right[is_similar]
    similarity = similarity[is_similar]
    order = np.argsort(-similarity, kind="stable")[:most]
    offsets = [block.document_offsets for block in blocks]
    items = []
    for place in order:
        one = _place_and_text(blocks, offsets, int(firsts[left[place]]))
        another = _place_and_text(blocks, offsets, int(firsts[right[place]]))
        items.append((float(similarity[place]), ": ".join(one), ": ".join(another)))
    similar = len(np.union1d(left, right))
    return NearCopies(compared=len(firsts), similar=similar, pairs=items)


def unknown_words(
    blocks: Sequence[DocumentBlock], vocab: Sequence[str], *, lowercase: Lowercase, most: int
) -> Unknown:
    """Find the words that become [UNK] with a vocabulary.

    Args:
        blocks: of the sample.
        vocab: its entries.
        lowercase: whether it is lower-cased, with or without accents.
        most: words to return.

    Returns:
        The fraction of unknown words, tokens per word, and the most frequent unknown words.
    """
    counter = WordCounter(lowercase=lowercase, max_word_length=_LONGEST_WORD)
    for block in blocks:
        counter.count(block.sentences)
    counted, counts = counter.words()
    words = counted.to_pylist()
    tokenizer = HostTokenizer(vocab, lowercase=lowercase)
    tokens = tokenizer.tokenize_texts(words)
    lengths = np.diff(tokens.offsets)
    is_unknown = np.zeros(len(words), np.bool_)
    # A word is unknown as a whole: WordPiece makes it a single [UNK].
    is_unknown[np.repeat(np.arange(len(words)), lengths)[tokens.ids == tokenizer.unk_id]] = True
    total = int(counts.sum())
    unknown = np.flatnonzero(is_unknown)
    order = unknown[np.argsort(-counts[unknown], kind="stable")][:most]
    return Unknown(
        words=total,
        fraction=float(counts[unknown].sum() / max(total, 1)),
        tokens_per_word=float((counts * lengths).sum() / max(total, 1)),
        most=[(words[place], int(counts[place])) for place in order],
    )


def find_copies(
    blocks: Sequence[DocumentBlock],
    keys_of_blocks: Sequence[np.ndarray],
    offsets_of_blocks: Sequence[np.ndarray],
    *,
    most: int,
) -> Copies:
    """Find documents, or lines, with equal keys.

    Args:
        blocks: of the sample.
        keys_of_blocks: a key of each document or line.
        offsets_of_blocks: int64 [documents or lines + 1] into the sentences, to show them.
        most: texts to return.

    Returns:
        The counts, and the most frequent texts.
    """
    keys = np.concatenate(keys_of_blocks)
    _, firsts, counts = np.unique(keys, return_index=True, return_counts=True)
    repeated = np.flatnonzero(counts > 1)
    order = repeated[np.lexsort((firsts[repeated], -counts[repeated]))][:most]
    items = []
    for place in order.tolist():
        first_place, text = _place_and_text(blocks, offsets_of_blocks, int(firsts[place]))
        items.append((text, int(counts[place]), first_place))
    return Copies(number=len(keys), surplus=len(keys) - len(counts), most=items)


def _place_and_text(
    blocks: Sequence[DocumentBlock], offsets_of_blocks: Sequence[np.ndarray], number: int
) -> tuple[str, str]:
    """Return where the document of a text begins, and the text's beginning.

    Args:
        blocks: of the sample.
        offsets_of_blocks: of documents or lines, into the sentences of each block.
        number: of the document or line, counted over the blocks.

    Returns:
        `path:line`, and the first sentences.
    """
    bounds = np.cumsum([0, *(len(offsets) - 1 for offsets in offsets_of_blocks)])
    place = int(np.searchsorted(bounds, number, side="right")) - 1
    block = blocks[place]
    inside = number - int(bounds[place])
    begin, end = offsets_of_blocks[place][inside : inside + 2].tolist()
    document = int(np.searchsorted(block.document_offsets, begin, side="right")) - 1
    sentences = block.sentences.slice(begin, min(end - begin, _SHOWN_SENTENCES))
    text = " ".join(sentences.to_pylist())
    return f"{block.source}:{block.document_lines[document]}", text
