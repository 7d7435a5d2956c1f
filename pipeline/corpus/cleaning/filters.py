"""Drops documents that are too short or hardly text."""

from __future__ import annotations

import dataclasses
import functools
import unicodedata

import numba
import numpy as np

from pipeline.corpus.blocks.document_block import DocumentBlock, add_reason, offsets_and_data
from pipeline.corpus.cleaning.characters import ASSIGNED, NUM_CODE_POINTS, decode

TOO_FEW_CHARACTERS = "too few characters"
TOO_FEW_WORDS = "too few words"
TOO_FEW_LETTERS = "too few letters"
_OTHER, _LETTER, _WHITE = 0, 1, 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class DocumentLimits:
    """What a document must have to be kept; 0 sets no limit.

    Attributes:
        min_characters: Unicode characters of its sentences, with the spaces inside them.
        min_words: what white space separates.
        min_letter_fraction: letters, with the marks that belong to them, among the characters that
            are not white space.
    """

    min_characters: int = 0
    min_words: int = 0
    min_letter_fraction: float = 0.0


NO_LIMITS = DocumentLimits()


def keep_fit_documents(block: DocumentBlock, limits: DocumentLimits) -> DocumentBlock:
    """Drops the documents outside the limits, each under the first reason that holds."""
    if limits == NO_LIMITS:
        return block
    sizes = measure_documents(block)
    kept = np.ones(block.num_documents, np.bool_)
    dropped = block.dropped
    for reason, is_fit in (
        (TOO_FEW_CHARACTERS, sizes.characters >= limits.min_characters),
        (TOO_FEW_WORDS, sizes.words >= limits.min_words),
        (TOO_FEW_LETTERS, sizes.letters >= limits.min_letter_fraction * sizes.visible),
    ):
        dropped = add_reason(dropped, reason, int((kept & ~is_fit).sum()))
        kept &= is_fit
    return dataclasses.replace(block.keep_documents(kept), dropped=dropped)


@dataclasses.dataclass(frozen=True)
class DocumentSizes:
    """int64 [documents] each; `visible` are the characters that are not white space."""

    characters: np.ndarray
    words: np.ndarray
    letters: np.ndarray
    visible: np.ndarray


def measure_documents(block: DocumentBlock) -> DocumentSizes:
    """Measures what `DocumentLimits` limits."""
    offsets, data = offsets_and_data(block.sentences)
    sizes = np.zeros((4, block.num_documents), np.int64)
    _measure(data, offsets, block.document_offsets, _letter_table(), sizes)
    return DocumentSizes(*sizes)


@functools.cache
def _letter_table() -> np.ndarray:
    table = np.full(NUM_CODE_POINTS, _OTHER, np.uint8)
    for code_point in ASSIGNED:
        character = chr(code_point)
        if character.isspace():
            table[code_point] = _WHITE
        elif unicodedata.category(character)[0] in "LM":
            table[code_point] = _LETTER
    return table


@numba.njit(cache=True, nogil=True)
def _measure(data, offsets, document_offsets, table, sizes):
    for document in range(sizes.shape[1]):
        characters = words = letters = visible = 0
        for sentence in range(document_offsets[document], document_offsets[document + 1]):
            position, stop = offsets[sentence], offsets[sentence + 1]
            in_word = False
            while position < stop:
                code_point, width = decode(data, position)
                kind = table[code_point]
                characters += 1
                letters += kind == _LETTER
                visible += kind != _WHITE
                words += kind != _WHITE and not in_word
                in_word = kind != _WHITE
                position += width
        sizes[0, document] = characters
        sizes[1, document] = words
        sizes[2, document] = letters
        sizes[3, document] = visible
