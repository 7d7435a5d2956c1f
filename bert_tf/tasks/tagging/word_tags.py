"""Predicted tags of the words that a file has, from those of BERT's words."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bert_tf.base.arrays import offsets_of
from bert_tf.tasks.base.prediction_rows import json_values
from bert_tf.tasks.tagging.rows.gold_tags import NO_WORD, first_words
from bert_tf.tasks.tagging.rows.word_rows import TextWords
from bert_tf.tasks.tagging.schemes import OUTSIDE


def predicted_words(column: Iterable[Any]) -> tuple[TextWords, list[str]]:
    """BERT's words and their tags from `predicted_tags`: lists, or JSON text of them."""
    rows = json_values(column)
    words = TextWords(
        offsets=offsets_of(np.array([len(row) for row in rows], np.int64)),
        starts=np.array([word["start"] for row in rows for word in row], np.int64),
        ends=np.array([word["end"] for row in rows for word in row], np.int64),
    )
    return words, [word["tag"] for row in rows for word in row]


def tags_of_words(
    rows: Sequence[Sequence[str]], predicted: Mapping[str, Iterable[Any]]
) -> list[list[str]]:
    """The tag of each word: that of the first of BERT's words in it, O if there is none.

    Args:
        rows: words, which joined by blanks were the texts that the model tagged.
        predicted: columns of `prediction_columns`, or of an exported model.
    """
    words, tags = predicted_words(predicted["predicted_tags"])
    counts = np.array([len(row) for row in rows], np.int64)
    offsets = offsets_of(counts)
    sizes = np.array([len(word) for row in rows for word in row], np.int64)
    places = offsets_of(sizes + 1)  # of each word with the blank after it, all texts end to end
    bases = places[offsets]
    starts = places[:-1] - np.repeat(bases[:-1], counts)
    given = TextWords(offsets=offsets, starts=starts, ends=starts + sizes)
    lengths = np.diff(bases) - 1
    found = [
        tags[word] if word != NO_WORD else OUTSIDE
        for word in first_words(given, words, lengths).tolist()
    ]
    return [found[begin:end] for begin, end in itertools.pairwise(offsets.tolist())]
