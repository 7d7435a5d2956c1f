"""Question answering over long contexts: windows, and the way between characters and pieces.

Follows google-research/bert `run_squad.py` (`convert_examples_to_features`), as array functions
over all questions at once. A row is `[CLS] question [SEP] part of the context [SEP]`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from bert_tf.base.arrays import flat_ranges, offsets_of
from bert_tf.data.rows.encoded_rows import EncodedRows

NO_ANSWER_POSITION = 0  # where [CLS] stands


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pieces:
    """Texts as pieces, with the characters each piece covers.

    Attributes:
        ids: int32 [pieces of all texts].
        offsets: int64 [texts + 1]; text i has the pieces `offsets[i]:offsets[i + 1]`.
        first_characters: int64 [pieces], the character of its text a piece begins at.
        last_characters: int64 [pieces], the character after the piece.
    """

    ids: np.ndarray
    offsets: np.ndarray
    first_characters: np.ndarray
    last_characters: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """Pieces of each text, int64 [texts]."""
        return np.diff(self.offsets)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Windows:
    """Parts of contexts, each seen together with its question.

    Attributes:
        question: int64 [windows], which question, ascending.
        start: int64 [windows], first piece of the context in the window.
        length: int64 [windows], pieces of the context in the window.
    """

    question: np.ndarray
    start: np.ndarray
    length: np.ndarray

    def __len__(self) -> int:
        return len(self.question)


def context_windows(
    context_lengths: np.ndarray,
    question_lengths: np.ndarray,
    *,
    max_seq_length: int,
    doc_stride: int,
) -> Windows:
    """Cuts contexts into overlapping windows that cover every piece.

    With room for 5 pieces and a stride of 3, a context of 9 pieces gives the windows 0-4, 3-7 and
    6-8. A stride greater than the room is taken as the room, so that no piece is left out. A
    context without pieces has one empty window.

    Args:
        context_lengths: int [questions], pieces of each question's context.
        question_lengths: int [questions], pieces of each question, already cut.
        max_seq_length: pieces of a row; at least 4 more than the longest question.
        doc_stride: pieces from the start of one window to the start of the next.
    """
    context_lengths = np.asarray(context_lengths, np.int64)
    room = max_seq_length - 3 - np.asarray(question_lengths, np.int64)
    step = np.minimum(doc_stride, room)
    beyond_first = np.maximum(context_lengths - room, 0)
    counts = 1 + -(-beyond_first // step)
    question = np.repeat(np.arange(len(counts)), counts)
    start = flat_ranges(np.zeros(len(counts)), counts) * step[question]
    length = np.minimum(room[question], context_lengths[question] - start)
    return Windows(question=question, start=start, length=length)


def window_rows(
    windows: Windows,
    questions: Pieces,
    contexts: Pieces,
    context_index: np.ndarray,
    *,
    cls_id: int,
    sep_id: int,
) -> EncodedRows:
    """Builds the row of every window.

    Args:
        windows: from `context_windows`.
        questions: pieces of each question, already cut.
        contexts: pieces of each context.
        context_index: int [questions], the context of each question.
        cls_id, sep_id: ids of [CLS] and [SEP].
    """
    question_lengths = questions.lengths[windows.question]
    offsets = offsets_of(question_lengths + windows.length + 3)
    ids = np.full(offsets[-1], sep_id, np.int32)
    begins = offsets[:-1]
    ids[begins] = cls_id
    ids[flat_ranges(begins + 1, question_lengths)] = questions.ids[
        flat_ranges(questions.offsets[windows.question], question_lengths)
    ]
    context_begins = contexts.offsets[context_index[windows.question]] + windows.start
    ids[flat_ranges(begins + question_lengths + 2, windows.length)] = contexts.ids[
        flat_ranges(context_begins, windows.length)
    ]
    return EncodedRows(
        ids=ids, offsets=offsets, second_starts=(question_lengths + 2).astype(np.int32)
    )


def answer_pieces(
    contexts: Pieces, context_index: np.ndarray, starts: np.ndarray, ends: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The first and last piece of the context that an answer touches.

    Args:
        contexts: pieces of each context.
        context_index: int [answers], the context of each answer.
        starts: int [answers], first character of the answer in its context.
        ends: int [answers], the character after it.

    Returns:
        first, last int64 [answers], counted within the context; -1 where the answer touches no
        piece (it is blank, or its end is not after its start).
    """
    # One ascending axis for all contexts: each context's characters begin after the last one's.
    pieces_of = contexts.lengths
    widths = np.zeros(len(pieces_of), np.int64)
    filled = pieces_of > 0
    widths[filled] = contexts.last_characters[contexts.offsets[1:][filled] - 1]
    if len(ends):
        np.maximum.at(widths, context_index, np.asarray(ends, np.int64))
    bases = offsets_of(widths + 1)[:-1]
    base_of_piece = np.repeat(bases, pieces_of)
    first = np.searchsorted(
        base_of_piece + contexts.last_characters, bases[context_index] + starts, side="right"
    )
    last = (
        np.searchsorted(
            base_of_piece + contexts.first_characters, bases[context_index] + ends, side="left"
        )
        - 1
    )
    begins = contexts.offsets[context_index]
    first, last = np.maximum(first, begins) - begins, last - begins
    touched = (first <= last) & (first < pieces_of[context_index]) & (ends > starts)
    return np.where(touched, first, -1), np.where(touched, last, -1)


def window_targets(
    windows: Windows,
    question_lengths: np.ndarray,
    first_pieces: np.ndarray,
    last_pieces: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Where in its row each window's answer begins and ends.

    Args:
        windows: from `context_windows`.
        question_lengths: int [questions].
        first_pieces, last_pieces: int [questions], pieces of the context, -1 for no answer.

    Returns:
        start and end positions, int32 [windows]; both are [CLS] where the window does not hold the
        whole answer.
    """
    first = first_pieces[windows.question] - windows.start
    last = last_pieces[windows.question] - windows.start
    inside = (first_pieces[windows.question] >= 0) & (first >= 0) & (last < windows.length)
    shift = question_lengths[windows.question] + 2
    return (
        np.where(inside, first + shift, NO_ANSWER_POSITION).astype(np.int32),
        np.where(inside, last + shift, NO_ANSWER_POSITION).astype(np.int32),
    )


def characters_at_bytes(
    texts: Sequence[bytes], owners: np.ndarray, byte_offsets: np.ndarray
) -> np.ndarray:
    """Turns byte offsets into UTF-8 texts into character (code point) offsets.

    Args:
        texts: the texts, UTF-8.
        owners: int [n], ascending; the text of each offset.
        byte_offsets: int [n], at the beginning of a character or at the end of its text.

    Returns:
        int64 [n].
    """
    flat = np.frombuffer(b"".join(texts), np.uint8)
    characters_before = offsets_of((flat & 0xC0) != 0x80)
    bases = offsets_of(np.array([len(text) for text in texts], np.int64))[:-1]
    return characters_before[bases[owners] + byte_offsets] - characters_before[bases[owners]]
