"""Splits sentences into the words of BERT's basic tokenization, as flat bytes."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from bert_tf.base.arrays import offsets_of
from bert_tf.base.compiled import numba
from bert_tf.data.text.casing import Lowercase
from bert_tf.data.text.normalizer import IDEOGRAPHS, PRIVATE_USE, changed_code_points
from pipeline.corpus.characters import NUM_CODE_POINTS, code_point_table, decode
from pipeline.corpus.document_block import offsets_and_data

# Actions for code points.
WORD = 0  # part of a word
BORDER = 1  # between words
ALONE = 2  # a word by itself
MAPPED = 3  # replaced by other code points, which have actions of their own
DROPPED = 4  # left out
_OUTPUT_BYTES = 1 << 22  # of words that are split at a time
_MOST_MAPPED = 16  # bytes that one code point may become
# Places in the kernel's state, int64 [6]: the sentence, the byte in it, bytes and words written,
# characters of the present word, and words that were too long.
_SENTENCE = 0
_POSITION = 1
_WRITTEN = 2
_WORDS = 3
_CHARACTERS = 4
_TOO_LONG = 5


class WordTables(NamedTuple):
    """Tables by which a kernel splits UTF-8 into words, like BERT's `BasicTokenizer`.

    Attributes:
        actions: uint8 [NUM_CODE_POINTS], WORD, BORDER, ALONE, MAPPED or DROPPED.
        mapping_of: int32 [NUM_CODE_POINTS]; a MAPPED code point becomes `mapped[offsets[m] :
            offsets[m + 1]]` with m its entry here.
        offsets: int32 [mappings + 1].
        mapped: uint8, UTF-8 of all mappings, whose code points are never MAPPED again.
        ascii_actions: uint8 [128], WORD, BORDER, ALONE or DROPPED.
        ascii_letters: uint8 [128], the replacement of each ASCII character.
    """

    actions: np.ndarray
    mapping_of: np.ndarray
    offsets: np.ndarray
    mapped: np.ndarray
    ascii_actions: np.ndarray
    ascii_letters: np.ndarray


@functools.cache
def word_tables(lowercase: Lowercase) -> WordTables:
    """Make the tables for a casing."""

    def action_of(character: str, category: str) -> int:
        is_ascii_symbol = "\x20" < character < "\x7f" and not character.isalnum()
        return ALONE if is_ascii_symbol or category[0] == "P" else WORD

    actions = code_point_table(action_of, WORD, caseless=WORD)
    for first, last in IDEOGRAPHS:
        actions[first : last + 1] = ALONE
    actions[0] = DROPPED
    mapping_of = np.zeros(NUM_CODE_POINTS, np.int32)
    mappings: list[bytes] = []
    for code_point, result in changed_code_points(lowercase=lowercase):
        if result in ("", " "):
            actions[code_point] = BORDER if result else DROPPED
        else:
            actions[code_point] = MAPPED
            mapping_of[code_point] = len(mappings)
            mappings.append(result.encode("utf-8"))
    for first, last in PRIVATE_USE:
        actions[first : last + 1] = DROPPED
    actions[ord(" ")] = BORDER
    lengths = np.array([len(mapping) for mapping in mappings], np.int64)
    ascii_letters = bytes(range(128)).lower() if lowercase else bytes(range(128))
    return WordTables(
        actions=actions,
        mapping_of=mapping_of,
        offsets=offsets_of(lengths).astype(np.int32),
        mapped=np.frombuffer(b"".join(mappings), np.uint8),
        ascii_actions=np.where(actions[:128] == MAPPED, WORD, actions[:128]).astype(np.uint8),
        ascii_letters=np.frombuffer(ascii_letters, np.uint8),
    )


class WordSplitter:
    """Splits sentences into words.

    Args:
        lowercase: of the vocabulary.
        max_word_length: characters; longer words are only counted, in `too_long`.
    """

    def __init__(self, *, lowercase: Lowercase, max_word_length: int):
        self.too_long = 0
        self._rules = word_tables(lowercase)
        self._max_word_length = max_word_length

    def split(self, sentences: pa.Array) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield uint8 letters and int64 [words + 1] bounds; the next ones overwrite them."""
        offsets, data = offsets_and_data(sentences)
        size = _OUTPUT_BYTES + 4 * self._max_word_length + _MOST_MAPPED
        letters = np.empty(size, np.uint8)
        bounds = np.empty(size + 1, np.int64)
        bounds[0] = 0
        state = np.zeros(6, np.int64)
        state[_POSITION] = offsets[0]
        while state[_SENTENCE] < len(sentences):
            _split(data, offsets, self._rules, self._max_word_length, letters, bounds, state)
            words = int(state[_WORDS])
            yield letters, bounds[: words + 1]
            # The last word may not have ended yet: its beginning moves to the front.
            beginning = letters[bounds[words] : int(state[_WRITTEN])].copy()
            letters[: len(beginning)] = beginning
            state[_WORDS] = 0
            state[_WRITTEN] = len(beginning)
        self.too_long += int(state[_TOO_LONG])


@numba.njit(cache=True, nogil=True)
def _split(data, offsets, rules, max_word_length, letters, bounds, state):
    """Split sentences until they end or the output is nearly full.

    Args:
        data: uint8, UTF-8 of the sentences.
        offsets: int64 [sentences + 1] into `data`.
        rules: the tables.
        max_word_length: characters; longer words are only counted.
        letters: uint8, set to the bytes of words.
        bounds: int64, set to where words begin and end in `letters`.
        state: int64 [6], the place to continue from, indexed by `_SENTENCE` and the constants after
            it; updated.
    """
    actions, mapping_of, mapping_offsets, mapped, ascii_actions, ascii_letters = rules
    sentence, position, written, words, characters, too_long = state
    full = len(letters) - _MOST_MAPPED
    while sentence < len(offsets) - 1:
        stop = offsets[sentence + 1]
        while position < stop and written < full:
            byte = data[position]
            if byte < 0x80:  # most characters of most texts, so they have a fast path
                action = ascii_actions[byte]
                if action == WORD:
                    if characters < max_word_length:
                        letters[written] = ascii_letters[byte]
                        written += 1
                    characters += 1
                elif action != DROPPED:
                    written, words, characters, too_long = _end_word(
                        max_word_length, bounds, (written, words, characters, too_long)
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
                        mapped, inner, inner_width, actions[code_point], max_word_length, letters,
                        bounds, (written, words, characters, too_long),
                    )  # fmt: skip
                    inner += inner_width
            elif action != DROPPED:
                written, words, characters, too_long = _take(
                    data, position, width, action, max_word_length, letters,
                    bounds, (written, words, characters, too_long),
                )  # fmt: skip
            position += width
        if position < stop:
            break
        written, words, characters, too_long = _end_word(
            max_word_length, bounds, (written, words, characters, too_long)
        )
        sentence += 1
        if written >= full:
            break
    state[:] = (sentence, position, written, words, characters, too_long)


@numba.njit(cache=True, inline="always")
def _end_word(max_word_length, bounds, progress):
    """Close the word that is being written, or remove it if it is too long.

    Args:
        max_word_length, bounds: see `_split`.
        progress: bytes and words written, characters of the current word, and words too long.

    Returns:
        `progress` after it.
    """
    written, words, characters, too_long = progress
    if characters > max_word_length:
        too_long += 1
        written = bounds[words]
    elif characters > 0:
        words += 1
        bounds[words] = written
    return written, words, np.int64(0), too_long


@numba.njit(cache=True, inline="always")
def _take(source, position, width, action, max_word_length, letters, bounds, progress):
    """Write a code point as a part of the word or, after that word's end, as one by itself.

    Args:
        source: uint8, UTF-8 with the code point.
        position: its first byte.
        width: number of its bytes.
        action: WORD, ALONE or BORDER, which writes nothing.
        max_word_length, letters, bounds: see `_split`.
        progress: bytes and words written, characters of the current word, and words too long.

    Returns:
        `progress` after it.
    """
    if action == WORD:
        written, words, characters, too_long = progress
        if characters < max_word_length:
            for byte in range(width):
                letters[written + byte] = source[position + byte]
            written += width
        characters += 1
    else:
        written, words, characters, too_long = _end_word(max_word_length, bounds, progress)
        if action != BORDER:
            for byte in range(width):
                letters[written + byte] = source[position + byte]
            written += width
            words += 1
            bounds[words] = written
    return written, words, characters, too_long
