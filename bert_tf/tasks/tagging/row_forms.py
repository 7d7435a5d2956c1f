"""Forms of rows of tagged text, and the columns of a table that make them up."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from bert_tf.base.arrays import offsets_of
from bert_tf.base.console import Console
from bert_tf.base.errors import Fault
from bert_tf.base.wording import quantity
from bert_tf.data.tables.formats.conll import ConllSentence
from bert_tf.data.tables.value_forms import PIECE
from bert_tf.data.text.vocab_file import CONTINUATION
from bert_tf.tasks.base.host_task import kept_if_set


@dataclasses.dataclass(frozen=True, kw_only=True)
class TagColumns:
    """Names of the columns of a table: of words with tags, or of a text with entities.

    Attributes:
        text, entities: columns of a text and of the list of its entities.
        tokens, tags: columns of words and of tags, in CoNLL files numbers; None for the usual ones.
        sentence: column that tells sentences apart if each row is a word; None if unknown.
    """

    text: str
    tokens: str | None
    tags: str | None
    entities: str
    sentence: str | None = kept_if_set(None)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaggedText:
    """A row: a text with marks.

    The marks are all words of the text, joined by a space, with a tag each; or labeled entities, in
    order, that share no character.

    Attributes:
        line: line of the file, counted from 1.
        text: the text.
        has_words: whether the marks are words.
        starts, ends: characters of each mark; the end is exclusive.
        tags: tag or label of each mark.
        lines: line of each mark.
        fault: reason and detail why the row cannot be used; None if it can.
    """

    line: int
    text: str = ""
    has_words: bool = True
    starts: list[int] = dataclasses.field(default_factory=list)
    ends: list[int] = dataclasses.field(default_factory=list)
    tags: list[str] = dataclasses.field(default_factory=list)
    lines: list[int] = dataclasses.field(default_factory=list)
    fault: Fault | None = None

    def words(self) -> list[str]:
        """Return the texts of the marks."""
        return [self.text[start:end] for start, end in zip(self.starts, self.ends, strict=True)]


def row_of_words(line: int, words: list[str], tags: list[str], lines: list[int]) -> TaggedText:
    """Make a row of words, joined by blanks to its text.

    Args:
        line: first line of the row.
        words: the words.
        tags, lines: tag and line of each word.
    """
    lengths = np.array([len(word) for word in words], np.int64)
    starts = offsets_of(lengths + 1)[:-1]
    return TaggedText(
        line=line,
        text=" ".join(words),
        starts=starts.tolist(),
        ends=(starts + lengths).tolist(),
        tags=tags,
        lines=lines,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableForm(TagColumns):
    """Columns of words with tags, or of texts with entities.

    Attributes:
        sentence: column that tells sentences apart if each row is a word.
        document: column that tells documents apart if sentences are counted in each; None for none.
        has_words: whether rows are words with tags.
        ends_at_blank_lines: whether each row is a word, and blank lines end sentences.
    """

    tokens: str
    tags: str
    has_words: bool = True
    document: str | None = None
    ends_at_blank_lines: bool = False

    @property
    def has_word_rows(self) -> bool:
        """Return whether each row is a word."""
        return self.sentence is not None or self.ends_at_blank_lines


def sentence_row(sentence: ConllSentence) -> TaggedText:
    """Make a row of a sentence whose words have a line each."""
    if sentence.fault is not None:
        return TaggedText(line=sentence.line, fault=sentence.fault)
    return row_of_words(sentence.line, sentence.words, sentence.tags, sentence.lines)


_MARKERS = frozenset(("[CLS]", "[SEP]", "[PAD]"))  # of BERT's input
# Pieces are joined if there are so many, and if they are this share of the words: a text about
# tokenizers, or a hash tag, has some.
_FEWEST_PIECES = 3
_PIECES = 0.01
_FIRST_PIECES = 0.05  # at most this share of the pieces begins a row, where a long text was cut


def with_whole_words(
    path: str | Path, rows: list[TaggedText], console: Console | None
) -> list[TaggedText]:
    """Join the pieces of WordPiece that a file has in place of words; `anna ##na` is `annana`.

    A word gets the tag of its first piece, as in BERT. Other pieces mostly have a tag without
    meaning, such as X. Files without pieces stay as they are.

    Args:
        path: the file, for the message.
        rows: at least one; all of them have words, or none of them.
        console: receives a note on pieces; None for none.
    """
    if not rows[0].has_words:
        return rows
    words_of_rows = [row.words() for row in rows]
    words = sum(map(len, words_of_rows))
    is_piece = [[PIECE.fullmatch(word) is not None for word in row] for row in words_of_rows]
    pieces = sum(map(sum, is_piece))
    firsts = sum(row[0] for row in is_piece if row)
    if pieces < max(_FEWEST_PIECES, _PIECES * words) or firsts > _FIRST_PIECES * pieces:
        return rows
    if console is not None:
        console.info(
            f"{path}: {pieces:,} of {quantity(words, 'word')} begin with '##', as the pieces of "
            "WordPiece do; they are joined to words, which have the tags of their first pieces"
        )
    return [_joined(row, words) for row, words in zip(rows, words_of_rows, strict=True)]


def _joined(row: TaggedText, pieces: list[str]) -> TaggedText:
    """Join the pieces of a row, and leave out the special tokens of BERT's input."""
    words: list[str] = []
    kept: list[int] = []
    for place, piece in enumerate(pieces):
        if piece in _MARKERS:
            continue
        if kept and PIECE.fullmatch(piece):
            words[-1] += piece.removeprefix(CONTINUATION)
        else:
            words.append(piece)
            kept.append(place)
    if not kept:
        return row
    tags = [row.tags[place] for place in kept]
    lines = [row.lines[place] for place in kept]
    return row_of_words(row.line, words, tags, lines)
