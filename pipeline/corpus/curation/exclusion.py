"""Finds text that documents share with others, such as evaluation data: 13-grams of folded words
(Brown et al. 2020, arXiv:2005.14165, appendix C), or the whole of a shorter text.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numba
import numpy as np

from bert_tf.base.arrays import offsets_of
from bert_tf.base.kernels import GOLDEN_RATIO, mix64
from pipeline.beam.blobs import BlobReference, BlobStore
from pipeline.beam.packing import pack, unpack
from pipeline.corpus.curation.words import gram_at
from pipeline.corpus.document_block import (
    DocumentBlock,
    document_hashes,
    offsets_and_data,
)
from pipeline.corpus.duplicates.folding import FoldedTexts, fold_texts
from pipeline.corpus.evidence import Evidence, Shared

EXCLUDED = "excluded text"
_GRAM = 13  # words
# Words of shorter texts: to be found anywhere, or as a whole sentence or paragraph. Those of fewer
# are found only as whole documents, since "very bad" is in any corpus.
_ANYWHERE, _WHOLE = 8, 4
_MOST_BYTES = 1000  # of a stretch that is listed
_HALF = np.uint64(32)
_NOT_FOUND = np.uint32(0xFFFFFFFF)


class Grams(NamedTuple):
    """Keys of n-grams, which take 14 to 16 bytes each."""

    keys: np.ndarray  # uint64 [n-grams], rising
    owners: np.ndarray  # uint32 [n-grams], the first text with each
    # uint8, a Bloom filter of the first 8 words of n-grams, with two bits of each. It dismisses 99%
    # of the words of clean text.
    is_any: np.ndarray
    shift: int

    @classmethod
    def of_words(cls, words: np.ndarray, offsets: np.ndarray) -> Grams:
        keys, owners, beginnings = _grams_of(words, offsets)
        keys, firsts = np.unique(keys, return_index=True)
        bits = len(keys).bit_length() + 4
        is_any = np.zeros(1 << bits, np.bool_)
        is_any[beginnings >> np.uint64(64 - bits)] = True
        is_any[beginnings << _HALF >> np.uint64(64 - bits)] = True
        return cls(keys, owners[firsts], np.packbits(is_any), 64 - bits)


@dataclasses.dataclass(frozen=True)
class ExcludedTexts:
    grams: Grams
    sizes: np.ndarray  # int64, words of n-grams to look for anywhere, falling
    text_files: np.ndarray  # int64 [texts], of `files`
    text_lines: np.ndarray  # int64 [texts]
    files: tuple[str, ...]

    @classmethod
    def of_words(
        cls,
        words: np.ndarray,
        lengths: np.ndarray,
        text_lines: np.ndarray,
        text_files: np.ndarray,
        files: Sequence[str],
    ) -> ExcludedTexts:
        """Of words of texts one after the other, as in `FoldedTexts`, and of the texts' lengths."""
        sizes = np.unique(np.minimum(lengths[lengths >= _ANYWHERE], _GRAM))[::-1].copy()
        grams = Grams.of_words(words, offsets_of(lengths))
        return cls(grams, sizes, text_files, text_lines, tuple(files))


@dataclasses.dataclass(frozen=True)
class Stretches:
    """Words of a block in overlapping n-grams of excluded texts."""

    starts: np.ndarray  # int64 [stretches]
    stops: np.ndarray  # int64 [stretches]
    texts: np.ndarray  # uint32 [stretches], of the first n-gram of each
    documents: np.ndarray  # int64 [stretches]
    folded: FoldedTexts  # the sentences


def find_shared(block: DocumentBlock, excluded: ExcludedTexts) -> Stretches:
    folded = fold_texts(block.sentences)
    words, sentences = folded.words, folded.offsets
    documents = sentences[block.document_offsets]
    sizes, texts = np.zeros(len(words), np.uint8), np.empty(len(words), np.uint32)
    _match_anywhere(words, documents, excluded.sizes, excluded.grams, sizes, texts)
    lines = sentences[block.line_offsets]
    for bounds, fewest in ((sentences, _WHOLE), (lines, _WHOLE), (documents, 1)):
        _match_whole(words, bounds, fewest, excluded.grams, sizes, texts)
    starts = np.flatnonzero(sizes)
    stops = np.maximum.accumulate(starts + sizes[starts])
    begins = np.append(True, starts[1:] >= stops[:-1])[: len(starts)]
    ends = np.append(begins[1:], True)[: len(starts)]
    firsts = starts[begins]
    return Stretches(firsts, stops[ends], texts[firsts], _places(documents, firsts), folded)


@dataclasses.dataclass(frozen=True)
class Exclusion:
    """Texts that workers leave out of documents; each process reads them once from the store."""

    store: BlobStore
    texts: BlobReference
    cuts: bool  # paragraphs rather than whole documents

    @classmethod
    def of_texts(cls, texts: ExcludedTexts, store: BlobStore, *, cuts: bool) -> Exclusion:
        with store.writer() as writer:
            return cls(store, writer.add(pack(texts)), cuts)

    def apply(self, block: DocumentBlock) -> DocumentBlock:
        excluded = _read_texts(self.store, self.texts)
        found = find_shared(block, excluded)
        if not len(found.starts):
            return block
        block = block.adding(Evidence(shared=list_shared(block, found, excluded)))
        if not self.cuts:
            goes = np.isin(np.arange(block.num_documents), found.documents)
            return block.drop_documents(goes, EXCLUDED)
        bounds = found.folded.offsets[block.line_offsets]
        borders = np.zeros(block.num_lines + 1, np.int64)
        np.add.at(borders, _places(bounds, found.starts), 1)
        np.add.at(borders, _places(bounds, found.stops - 1) + 1, -1)
        return block.drop_lines(np.cumsum(borders[:-1]) > 0, EXCLUDED, EXCLUDED)


def list_shared(block: DocumentBlock, found: Stretches, excluded: ExcludedTexts) -> list[Shared]:
    folded = found.folded
    offsets, data = offsets_and_data(block.sentences)
    identities = document_hashes(block)
    firsts, lasts = (_places(folded.offsets, each) for each in (found.starts, found.stops - 1))
    is_inside = found.stops < folded.offsets[lasts + 1]  # of its last sentence
    ends = np.where(is_inside, np.append(folded.starts, 0)[found.stops], offsets[lasts + 1])

    def text_of(place: int) -> str:
        bounds = offsets[firsts[place] : lasts[place] + 2].copy()
        bounds[0], bounds[-1] = folded.starts[found.starts[place]], ends[place]
        parts = (data[begin:end].tobytes() for begin, end in itertools.pairwise(bounds))
        return b" ".join(parts)[:_MOST_BYTES].decode("utf-8", "ignore").strip()

    return [
        Shared(
            source=block.source,
            line=int(block.document_lines[found.documents[place]]),
            identity=f"{identities[found.documents[place]]:016x}",
            words=int(found.stops[place] - found.starts[place]),
            text=text_of(place),
            exclude=excluded.files[excluded.text_files[found.texts[place]]],
            exclude_line=int(excluded.text_lines[found.texts[place]]),
        )
        for place in range(len(found.starts))
    ]


@functools.lru_cache(maxsize=1)
def _read_texts(store: BlobStore, texts: BlobReference) -> ExcludedTexts:
    found: ExcludedTexts = unpack(store.read(texts), ExcludedTexts, Grams)
    return found


def _places(bounds: np.ndarray, words: np.ndarray) -> np.ndarray:
    """The stretch between bounds that each word is in."""
    return np.searchsorted(bounds, words, side="right") - 1


@numba.njit(cache=True, nogil=True)
def _grams_of(words, offsets):
    """Keys of the 13-grams of texts, or of a shorter text as a whole; the text of each; keys of
    its first 8 words."""
    lengths = np.diff(offsets)
    count = np.maximum(lengths - (_GRAM - 1), np.minimum(lengths, 1)).sum()
    keys, owners = np.empty(count, np.uint64), np.empty(count, np.uint32)
    beginnings = np.empty(count, np.uint64)
    found = 0
    for text in range(len(lengths)):
        size = min(lengths[text], _GRAM)
        if size == 0:
            continue
        for place in range(offsets[text], offsets[text + 1] - size + 1):
            keys[found], owners[found] = gram_at(words, place, size), text
            beginnings[found] = gram_at(words, place, min(size, _ANYWHERE))
            found += 1
    return keys, owners, beginnings


@numba.njit(cache=True)
def _owner(key, grams):
    place = np.searchsorted(grams.keys, key)
    if place < len(grams.keys) and grams.keys[place] == key:
        return grams.owners[place]
    return _NOT_FOUND


@numba.njit(cache=True, nogil=True)
def _match_anywhere(words, documents, gram_sizes, grams, sizes, texts):
    """Note the longest n-gram that begins at each word; the first 8 words by rolling hashes, which
    equal `gram_at`."""
    sums = np.zeros(len(words) + 1, np.uint64)
    for place in range(len(words)):
        sums[place + 1] = sums[place] * GOLDEN_RATIO + words[place]
    factor = np.uint64(1)
    for _ in range(_ANYWHERE):
        factor *= GOLDEN_RATIO
    for document in range(len(documents) - 1):
        stop = documents[document + 1]
        for place in range(documents[document], stop - _ANYWHERE + 1):
            beginning = mix64(sums[place + _ANYWHERE] - sums[place] * factor)
            bit = np.int64(beginning >> np.uint64(grams.shift))
            if not grams.is_any[bit >> 3] & (128 >> (bit & 7)):
                continue
            bit = np.int64(beginning << _HALF >> np.uint64(grams.shift))
            if not grams.is_any[bit >> 3] & (128 >> (bit & 7)):
                continue
            for size in gram_sizes:
                if size > stop - place:
                    continue
                owner = _owner(gram_at(words, place, size), grams)
                if owner != _NOT_FOUND:
                    sizes[place], texts[place] = size, owner
                    break


@numba.njit(cache=True, nogil=True)
def _match_whole(words, bounds, fewest, grams, sizes, texts):
    """Note stretches between bounds, of words too few to be found anywhere, that are a text."""
    for stretch in range(len(bounds) - 1):
        place, size = bounds[stretch], bounds[stretch + 1] - bounds[stretch]
        if fewest <= size < _ANYWHERE and size > sizes[place]:
            owner = _owner(gram_at(words, place, size), grams)
            if owner != _NOT_FOUND:
                sizes[place], texts[place] = size, owner
