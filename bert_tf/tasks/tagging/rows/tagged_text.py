"""A row of tagged text, and where files have its parts."""

from __future__ import annotations

import dataclasses

import numpy as np

from bert_tf.base.arrays import offsets_of
from bert_tf.tasks.base.host_task import kept_if_set


@dataclasses.dataclass(frozen=True, kw_only=True)
class TagColumns:
    """Where a file has what; see `TaggingConfig`."""

    text: str
    tokens: str | None
    tags: str | None
    entities: str
    sentence: str | None = kept_if_set(None)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaggedText:
    """A row: a text with marks, which are its words or its entities.

    Attributes:
        line: of the file, counted from 1.
        text: words of a file that has words are joined by a space.
        has_words: whether the marks are all words of the text, with a tag each; otherwise they are
            entities with a label each, in order, and share no character.
        starts, ends: characters of each mark, the end exclusive.
        tags: of each mark.
        lines: of each mark.
        fault: why the row cannot be used, the reason and the detail; None if it can.
    """

    line: int
    text: str = ""
    has_words: bool = True
    starts: list[int] = dataclasses.field(default_factory=list)
    ends: list[int] = dataclasses.field(default_factory=list)
    tags: list[str] = dataclasses.field(default_factory=list)
    lines: list[int] = dataclasses.field(default_factory=list)
    fault: tuple[str, str] | None = None


def row_of_words(line: int, words: list[str], tags: list[str], lines: list[int]) -> TaggedText:
    """A row from words with a tag each."""
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
