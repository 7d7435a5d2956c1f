"""Splits sentences into the words of BERT's basic tokenization, as flat bytes."""

from __future__ import annotations

from collections.abc import Iterator

import numba
import numpy as np
import pyarrow as pa

from bert_tf.data.text.casing import Lowercase
from pipeline.corpus.characters import decode
from pipeline.corpus.document_block import offsets_and_data
from pipeline.vocabulary.normalization import ALONE, BORDER, DROPPED, MAPPED, WORD, word_tables

_OUTPUT_BYTES = 1 << 22
_MOST_MAPPED = 16  # bytes that one code point may become
# Places in the kernel's state.
_SENTENCE, _POSITION, _WRITTEN, _WORDS, _CHARACTERS, _TOO_LONG = range(6)


class WordSplitter:
    """Splits sentences into words.

    Args:
        lowercase: which tokenizer's words (see `normalization`).
        max_word_length: characters; longer words are left out and counted in `too_long`.
    """

    def __init__(self, *, lowercase: Lowercase, max_word_length: int):
        self.too_long = 0
        self._rules = word_tables(lowercase)
        self._max_word_length = max_word_length

    def split(self, sentences: pa.Array) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Splits sentences, whose ends are ends of words, some megabytes at a time.

        Yields:
            uint8 letters, and int64 [words + 1] bounds of the words in them; overwritten by the
            next.
        """
        offsets, data = offsets_and_data(sentences)
        rules = self._rules
        size = _OUTPUT_BYTES + 4 * self._max_word_length + _MOST_MAPPED
        letters = np.empty(size, np.uint8)
        bounds = np.empty(size + 1, np.int64)
        bounds[0] = 0
        state = np.zeros(6, np.int64)
        state[_POSITION] = offsets[0]
        while state[_SENTENCE] < len(sentences):
            _split(
                data,
                offsets,
                rules.actions,
                rules.mapping_of,
                rules.offsets,
                rules.mapped,
                rules.ascii_actions,
                rules.ascii_letters,
                self._max_word_length,
                letters,
                bounds,
                state,
            )
            words, written = int(state[_WORDS]), int(state[_WRITTEN])
            yield letters, bounds[: words + 1]
            begun = letters[bounds[words] : written].copy()  # a word that is not at its end yet
            letters[: len(begun)] = begun
            state[_WORDS], state[_WRITTEN] = 0, len(begun)
        self.too_long += int(state[_TOO_LONG])


@numba.njit(cache=True, nogil=True)
def _split(
    data,
    offsets,
    actions,
    mapping_of,
    mapping_offsets,
    mapped,
    ascii_actions,
    ascii_letters,
    max_word_length,
    letters,
    bounds,
    state,
):
    """Continues from `state` until the sentences end or the output is nearly full."""
    sentence, position, written, words, characters, too_long = state
    full = len(letters) - _MOST_MAPPED
    while sentence < len(offsets) - 1:
        stop = offsets[sentence + 1]
        while position < stop and written < full:
            byte = data[position]
            if byte < 0x80:  # most of most text: worth a short way
                action = ascii_actions[byte]
                if action == WORD:
                    if characters < max_word_length:
                        letters[written] = ascii_letters[byte]
                        written += 1
                    characters += 1
                elif action != DROPPED:
                    written, words, characters, too_long = _end_word(
                        max_word_length, bounds, written, words, characters, too_long
                    )
                    if action == ALONE:
                        letters[written] = byte
                        written += 1
                        words += 1
                        bounds[words] = written
                position += 1
                continue
            code_point, width = decode(data, position)
            action = actions[code_point]
            if action == MAPPED:
                mapping = mapping_of[code_point]
                inner = np.int64(mapping_offsets[mapping])
                while inner < mapping_offsets[mapping + 1]:
                    code_point, inner_width = decode(mapped, inner)
                    written, words, characters, too_long = _take(
                        mapped,
                        inner,
                        inner_width,
                        actions[code_point],
                        max_word_length,
                        letters,
                        bounds,
                        written,
                        words,
                        characters,
                        too_long,
                    )
                    inner += inner_width
            elif action != DROPPED:
                written, words, characters, too_long = _take(
                    data,
                    position,
                    width,
                    action,
                    max_word_length,
                    letters,
                    bounds,
                    written,
                    words,
                    characters,
                    too_long,
                )
            position += width
        if position < stop:
            break
        written, words, characters, too_long = _end_word(
            max_word_length, bounds, written, words, characters, too_long
        )
        sentence += 1
        if written >= full:
            break
    state[_SENTENCE], state[_POSITION], state[_WRITTEN] = sentence, position, written
    state[_WORDS], state[_CHARACTERS], state[_TOO_LONG] = words, characters, too_long


@numba.njit(cache=True, inline="always")
def _end_word(max_word_length, bounds, written, words, characters, too_long):
    """Closes the word that is being written, or takes it back if it is too long."""
    if characters > max_word_length:
        too_long += 1
        written = bounds[words]
    elif characters > 0:
        words += 1
        bounds[words] = written
    return written, words, np.int64(0), too_long


@numba.njit(cache=True, inline="always")
def _take(
    source,
    position,
    width,
    action,
    max_word_length,
    letters,
    bounds,
    written,
    words,
    characters,
    too_long,
):
    """Writes a code point as a part of the word or, after that word's end, as one by itself."""
    if action == WORD:
        if characters < max_word_length:
            for byte in range(width):
                letters[written + byte] = source[position + byte]
            written += width
        characters += 1
    else:
        written, words, characters, too_long = _end_word(
            max_word_length, bounds, written, words, characters, too_long
        )
        if action != BORDER:
            for byte in range(width):
                letters[written + byte] = source[position + byte]
            written += width
            words += 1
            bounds[words] = written
    return written, words, characters, too_long
