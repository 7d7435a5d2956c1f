"""`predictions` as graph operations: tags of words to entities, as JSON text of each row."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from bert_tf.tasks.tagging.schemes import BEGIN, END, OUT, SINGLE, tag_parts
from bert_tf.tasks.tagging.word_graph import GraphWords

# What JSON escapes in a text; the backslash first, since the others bring new ones.
_ESCAPES = [("\\", "\\\\"), ('"', '\\"')] + [
    (chr(code), json.dumps(chr(code))[1:-1]) for code in range(0x20)
]


class EntityWriter:
    """Writes the entities and tags of texts.

    Args:
        labels: tags in the order of the logits.
        scheme: of the tags.
    """

    def __init__(self, labels: Sequence[str], scheme: str):
        parts = [tag_parts(label, scheme) for label in labels]
        prefixes = np.array([part.prefix if part else OUT for part in parts])
        kinds = [part.kind if part else "" for part in parts]
        numbers = {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}
        self._is_outside = prefixes == OUT
        self._opens = np.isin(prefixes, (BEGIN, SINGLE))
        self._closes = np.isin(prefixes, (OUT, END, SINGLE))  # nothing continues it
        self._kinds = np.array([numbers[kind] for kind in kinds], np.int32)
        self._kind_texts = [json.dumps(kind, ensure_ascii=False) for kind in numbers]
        self._tag_texts = [json.dumps(label, ensure_ascii=False) for label in labels]

    def outputs(
        self, texts: tf.Tensor, words: GraphWords, tags: tf.Tensor, probabilities: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """`predicted_entities` and `predicted_tags` (string), `mean_score` (float32), all [n].

        Args:
            texts: UTF-8 string [n].
            words: of the texts.
            tags: int32 [words], numbers of labels.
            probabilities: float32 [words], of the tags.
        """
        rows = tf.size(texts)
        starts = characters_at_bytes(texts, words.text, words.start_bytes)
        ends = characters_at_bytes(texts, words.text, words.end_bytes)
        listed = tf.strings.join(
            [
                '{"start": ',
                tf.strings.as_string(starts),
                ', "end": ',
                tf.strings.as_string(ends),
                ', "tag": ',
                tf.gather(self._tag_texts, tags),
                "}",
            ]
        )
        counts = tf.math.unsorted_segment_sum(tf.ones_like(probabilities), words.text, rows)
        totals = tf.math.unsorted_segment_sum(probabilities, words.text, rows)
        return {
            "predicted_entities": self._entities(texts, words, tags, probabilities, starts, ends),
            "predicted_tags": _lists(listed, words.text, rows),
            "mean_score": tf.math.divide_no_nan(totals, counts),
        }

    def _entities(
        self,
        texts: tf.Tensor,
        words: GraphWords,
        tags: tf.Tensor,
        probabilities: tf.Tensor,
        starts: tf.Tensor,
        ends: tf.Tensor,
    ) -> tf.Tensor:
        kinds = tf.gather(self._kinds, tags)
        goes_on = (
            (words.text == _before(words.text, -1))
            & ~_before(tf.gather(self._closes, tags), True)
            & (kinds == _before(kinds, -1))
            & ~tf.gather(self._opens, tags)
        )
        is_inside = ~tf.gather(self._is_outside, tags)
        begins = is_inside & ~goes_on
        entities = tf.math.count_nonzero(begins, dtype=tf.int32)
        number = tf.boolean_mask(tf.cumsum(tf.cast(begins, tf.int32)) - 1, is_inside)

        def first(values: tf.Tensor) -> tf.Tensor:
            return tf.boolean_mask(values, begins)

        def greatest(values: tf.Tensor) -> tf.Tensor:
            inside = tf.boolean_mask(values, is_inside)
            return tf.math.unsorted_segment_max(inside, number, entities)

        score = tf.math.unsorted_segment_mean(
            tf.boolean_mask(probabilities, is_inside), number, entities
        )
        owner = first(words.text)
        begin = first(words.start_bytes)
        text = tf.strings.substr(tf.gather(texts, owner), begin, greatest(words.end_bytes) - begin)
        listed = tf.strings.join(
            [
                '{"start": ',
                tf.strings.as_string(first(starts)),
                ', "end": ',
                tf.strings.as_string(greatest(ends)),
                ', "label": ',
                tf.gather(self._kind_texts, first(kinds)),
                ', "text": "',
                _escaped(text),
                '", "score": ',
                tf.strings.as_string(score, precision=6),
                "}",
            ]
        )
        return _lists(listed, owner, tf.size(texts))


def characters_at_bytes(texts: tf.Tensor, owners: tf.Tensor, offsets: tf.Tensor) -> tf.Tensor:
    """Turns byte offsets into UTF-8 texts into character (code point) offsets, int64 [n].

    Args:
        texts: UTF-8 string [texts].
        owners: int32 [n], the text of each offset.
        offsets: int64 [n], in bytes.
    """
    flat = tf.io.decode_raw(tf.strings.reduce_join(texts), tf.uint8)
    begins = tf.cast(tf.bitwise.bitwise_and(flat, 0xC0) != 0x80, tf.int64)
    before = tf.concat([[0], tf.cumsum(begins)], 0)
    lengths = tf.cast(tf.strings.length(texts), tf.int64)
    bases = tf.gather(tf.cumsum(lengths, exclusive=True), owners)
    return tf.gather(before, bases + offsets) - tf.gather(before, bases)


def _lists(items: tf.Tensor, owners: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    """JSON lists of items, string [rows]."""
    joined = tf.strings.unsorted_segment_join(items, owners, rows, separator=", ")
    return tf.strings.join(["[", joined, "]"])


def _escaped(texts: tf.Tensor) -> tf.Tensor:
    for character, escape in _ESCAPES:
        pattern = f"\\x{{{ord(character):02x}}}"
        texts = tf.strings.regex_replace(texts, pattern, escape.replace("\\", "\\\\"))
    return texts


def _before(values: tf.Tensor, first: int | bool) -> tf.Tensor:
    """The value of the word before each."""
    return tf.concat([tf.constant([first], values.dtype), values], 0)[:-1]
