"""Finds text that documents share with others, such as evaluation data.

Shared are 13-grams of folded words (Brown et al. 2020, arXiv:2005.14165, appendix C), or the whole
of a shorter text. Texts of 8 words and more are found anywhere in a document, those of 4 to 7 as a
whole sentence or paragraph, shorter ones as a whole document: "very bad" is in any corpus.

How it is found (`find_shared`):

1. Documents and texts are folded to a 64-bit hash per word, so that case, spacing and punctuation
   do not count.
2. The n-grams of all texts are keys in a sorted array. One may stand for several texts; the first
   of them is named.
3. A Bloom filter of the first 8 words of all n-grams dismisses nearly every place of a clean
   document by one rolling hash. Only where it says "maybe", keys of 13 to 8 words are looked up.
4. Overlapping matches become one stretch of words. Its document or its paragraphs are dropped.

A match is wrong only if different words or n-grams have the same hash of 64 bits.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bert_tf.base.arrays import offsets_of
from bert_tf.base.compiled import numba
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
from pipeline.corpus.evidence import Evidence, SharedText

EXCLUDED = "excluded text"
_GRAM = 13  # words
# Words of shorter texts: to be found anywhere, or as a whole sentence or paragraph. Those of fewer
# are found only as whole documents, since "very bad" is in any corpus.
_ANYWHERE = 8
_WHOLE = 4
_MOST_BYTES = 1000  # of a stretch that is listed
_HALF = np.uint64(32)  # bits by which the second bit's hash in the filter is shifted
_NOT_FOUND = np.uint32(0xFFFFFFFF)


class Grams(NamedTuple):
    """Keys of n-grams, which take 14 to 16 bytes each.

    Attributes:
        keys: uint64 [n-grams], rising.
        owners: uint32 [n-grams], the first text with each.
        is_any: uint8, a Bloom filter of the first 8 words of n-grams, with two bits of each. It
            dismisses 99% of the words of clean text.
        shift: bits by which a hash is shifted to the right, to the number of its bit in the filter.
    """

    keys: np.ndarray
    owners: np.ndarray
    is_any: np.ndarray
    shift: int

    @classmethod
    def of_words(cls, words: np.ndarray, offsets: np.ndarray) -> Grams:
        """Make the keys of texts.

        Args:
            words: uint64, hashes of the words of all texts, end to end.
            offsets: int64 [texts + 1], where the words of each text begin.
        """
        keys, owners, beginnings = _grams_of(words, offsets)
        keys, firsts = np.unique(keys, return_index=True)
        # 16 to 32 bits for each n-gram.
        bits = len(keys).bit_length() + 4
        is_any = np.zeros(1 << bits, np.bool_)
        is_any[beginnings >> np.uint64(64 - bits)] = True
        is_any[beginnings << _HALF >> np.uint64(64 - bits)] = True
        return cls(keys, owners[firsts], np.packbits(is_any), 64 - bits)


@dataclasses.dataclass(frozen=True)
class ExcludedTexts:
    """Texts to find in documents.

    Attributes:
        grams: keys of their n-grams.
        sizes: int64, numbers of words of the n-grams to find anywhere, the highest first.
        text_files: int64 [texts], the file of each as a place in `files`.
        text_lines: int64 [texts], the line of each in its file.
        files: paths.
    """

    grams: Grams
    sizes: np.ndarray
    text_files: np.ndarray
    text_lines: np.ndarray
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
        """Make the texts to find.

        Args:
            words: uint64, hashes of the words of all texts, end to end, see `FoldedTexts`.
            lengths: int64 [texts], words of each.
            text_lines, text_files: int64 [texts], where each is; its file as a number.
            files: paths.
        """
        sizes = np.unique(np.minimum(lengths[lengths >= _ANYWHERE], _GRAM))[::-1].copy()
        grams = Grams.of_words(words, offsets_of(lengths))
        return cls(grams, sizes, text_files, text_lines, tuple(files))


@dataclasses.dataclass(frozen=True)
class Stretches:
    """Words of a block in overlapping n-grams of excluded texts.

    Attributes:
        starts, stops: int64 [stretches], words.
        texts: uint32 [stretches], of the first n-gram of each.
        documents: int64 [stretches].
        folded: the sentences.
    """

    starts: np.ndarray
    stops: np.ndarray
    texts: np.ndarray
    documents: np.ndarray
    folded: FoldedTexts


def find_shared(block: DocumentBlock, excluded: ExcludedTexts) -> Stretches:
    """Find the stretches of a block's documents that are in excluded texts; see the module.

    Args:
        block: cleaned as the excluded texts are.
        excluded: the texts.
    """
    folded = fold_texts(block.sentences, with_symbols=False)
    words = folded.words
    # Where sentences, documents and lines begin, as offsets into the words.
    sentences = folded.offsets
    documents = sentences[block.document_offsets]
    lines = sentences[block.line_offsets]
    sizes = np.zeros(len(words), np.uint8)
    texts = np.empty(len(words), np.uint32)
    _match_anywhere(words, documents, excluded.sizes, excluded.grams, sizes, texts)
    for bounds, fewest in ((sentences, _WHOLE), (lines, _WHOLE), (documents, 1)):
        _match_whole(words, bounds, fewest, excluded.grams, sizes, texts)
    starts = np.flatnonzero(sizes)
    # Where the farthest n-gram so far ends: one that begins before it belongs to the same stretch.
    stops = np.maximum.accumulate(starts + sizes[starts])
    begins = np.append(True, starts[1:] >= stops[:-1])[: len(starts)]
    ends = np.append(begins[1:], True)[: len(starts)]
    firsts = starts[begins]
    return Stretches(firsts, stops[ends], texts[firsts], _places(documents, firsts), folded)


@dataclasses.dataclass(frozen=True)
class Exclusion:
    """Texts that workers leave out of documents; each process reads them once from the store.

    Attributes:
        cuts: whether paragraphs go rather than whole documents.
    """

    store: BlobStore
    texts: BlobReference
    cuts: bool

    @classmethod
    def of_texts(cls, texts: ExcludedTexts, store: BlobStore, *, cuts: bool) -> Exclusion:
        with store.writer() as writer:
            return cls(store, writer.add(pack(texts)), cuts)

    def apply(self, block: DocumentBlock) -> DocumentBlock:
        excluded = _read_texts(self.store, self.texts)
        stretches = find_shared(block, excluded)
        if not len(stretches.starts):
            return block
        block = block.adding(Evidence(shared=list_shared(block, stretches, excluded)))
        if not self.cuts:
            is_dropped = np.isin(np.arange(block.num_documents), stretches.documents)
            return block.drop_documents(is_dropped, EXCLUDED)
        # Paragraphs in a stretch, by +1 and -1 at its borders: a running sum above 0.
        bounds = stretches.folded.offsets[block.line_offsets]
        borders = np.zeros(block.num_lines + 1, np.int64)
        np.add.at(borders, _places(bounds, stretches.starts), 1)
        np.add.at(borders, _places(bounds, stretches.stops - 1) + 1, -1)
        return block.drop_lines(np.cumsum(borders[:-1]) > 0, EXCLUDED, EXCLUDED)


def list_shared(
    block: DocumentBlock, stretches: Stretches, excluded: ExcludedTexts
) -> list[SharedText]:
    """List the stretches for the report, each with its text and the place of the excluded text.

    Args:
        block: the documents.
        stretches: their stretches.
        excluded: the texts.
    """
    folded = stretches.folded
    offsets, data = offsets_and_data(block.sentences)
    identities = document_hashes(block)
    first_sentences = _places(folded.offsets, stretches.starts)
    last_sentences = _places(folded.offsets, stretches.stops - 1)
    ends_inside = stretches.stops < folded.offsets[last_sentences + 1]  # of its last sentence
    next_words = np.append(folded.starts, 0)[stretches.stops]
    ends = np.where(ends_inside, next_words, offsets[last_sentences + 1])

    def text_of(place: int) -> str:
        bounds = offsets[first_sentences[place] : last_sentences[place] + 2].copy()
        bounds[0] = folded.starts[stretches.starts[place]]
        bounds[-1] = ends[place]
        parts = (data[begin:end].tobytes() for begin, end in itertools.pairwise(bounds))
        return b" ".join(parts)[:_MOST_BYTES].decode("utf-8", "ignore").strip()

    return [
        SharedText(
            source=block.source,
            line=int(block.document_lines[stretches.documents[place]]),
            identity=f"{identities[stretches.documents[place]]:016x}",
            words=int(stretches.stops[place] - stretches.starts[place]),
            text=text_of(place),
            exclude=excluded.files[excluded.text_files[stretches.texts[place]]],
            exclude_line=int(excluded.text_lines[stretches.texts[place]]),
        )
        for place in range(len(stretches.starts))
    ]


@functools.lru_cache(maxsize=1)
def _read_texts(store: BlobStore, texts: BlobReference) -> ExcludedTexts:
    excluded: ExcludedTexts = unpack(store.read(texts), ExcludedTexts, Grams)
    return excluded


def _places(bounds: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Return the stretch between bounds that each word is in."""
    return np.searchsorted(bounds, words, side="right") - 1


@numba.njit(cache=True, nogil=True)
def _grams_of(words, offsets):
    """Return the n-grams of texts.

    They are the 13-grams, or a shorter text as a whole.

    Args:
        words: uint64, hashes of words.
        offsets: int64 [texts + 1].

    Returns:
        keys: uint64 [n-grams].
        owners: uint32 [n-grams], the text of each.
        beginnings: uint64 [n-grams], keys of the first 8 words.
    """
    lengths = np.diff(offsets)
    count = np.maximum(lengths - (_GRAM - 1), np.minimum(lengths, 1)).sum()
    keys = np.empty(count, np.uint64)
    owners = np.empty(count, np.uint32)
    beginnings = np.empty(count, np.uint64)
    grams = 0
    for text in range(len(lengths)):
        size = min(lengths[text], _GRAM)
        if size == 0:
            continue
        for place in range(offsets[text], offsets[text + 1] - size + 1):
            keys[grams] = gram_at(words, place, size)
            owners[grams] = text
            beginnings[grams] = gram_at(words, place, min(size, _ANYWHERE))
            grams += 1
    return keys, owners, beginnings


@numba.njit(cache=True)
def _owner(key, grams):
    """Return the first text with a key, or _NOT_FOUND."""
    place = np.searchsorted(grams.keys, key)
    if place < len(grams.keys) and grams.keys[place] == key:
        return grams.owners[place]
    return _NOT_FOUND


@numba.njit(cache=True, nogil=True)
def _match_anywhere(words, documents, gram_sizes, grams, sizes, texts):
    """Note the longest n-gram that begins at each word, and its text.

    The first 8 words have rolling hashes, which equal `gram_at`: with sums S of hashes h to a base
    b, S(i+8) - S(i) * b^8 is the hash of the words between.

    Args:
        words: uint64, hashes of the words of all documents.
        documents: int64 [documents + 1], where each begins.
        gram_sizes: int64, numbers of words of n-grams, the highest first.
        grams: of excluded texts.
        sizes: uint8 [words], to be set to the words of the n-gram that begins there.
        texts: uint32 [words], to be set to the text with this n-gram.
    """
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
                    sizes[place] = size
                    texts[place] = owner
                    break


@numba.njit(cache=True, nogil=True)
def _match_whole(words, bounds, fewest, grams, sizes, texts):
    """Note the stretches between bounds that equal a text too short to be found anywhere.

    Args:
        words: uint64, hashes of the words of all documents.
        bounds: int64 [stretches + 1], offsets into the words.
        fewest: words of a stretch.
        grams, sizes, texts: see `_match_anywhere`; a longer n-gram stays.
    """
    for stretch in range(len(bounds) - 1):
        place = bounds[stretch]
        size = bounds[stretch + 1] - place
        if fewest <= size < _ANYWHERE and size > sizes[place]:
            owner = _owner(gram_at(words, place, size), grams)
            if owner != _NOT_FOUND:
                sizes[place] = size
                texts[place] = owner
