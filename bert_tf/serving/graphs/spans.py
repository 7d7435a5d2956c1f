"""Convert byte offsets into texts to characters and code points, and cut texts between them.

The bytes of all texts lie end to end in one array, so the memory is proportional to the texts and
the offsets. String operations such as `tf.strings.substr` need a text for each offset, and
`tf.gather(texts, owners)` copies a text for each. With an offset for each word, that would take the
square of the text's length.
"""

from __future__ import annotations

import tensorflow as tf


def cut_texts(texts: tf.Tensor, owners: tf.Tensor, starts: tf.Tensor, ends: tf.Tensor) -> tf.Tensor:
    """Cut spans out of texts.

    No operation cuts bytes into strings. So each byte of a span becomes a string of one byte, which
    TensorFlow stores inline in 24 bytes, and the strings of a span are joined.

    Args:
        texts: string [n].
        owners: int32 [spans], number of the text of each span.
        starts, ends: int64 [spans], byte offsets into that text.

    Returns:
        string [spans].
    """
    flat, bases = _flat_bytes(texts, owners)
    places = tf.ragged.range(bases + starts, bases + ends)
    values = tf.cast(tf.gather(flat, places.flat_values), tf.int32)
    strings = tf.gather(tf.constant([bytes([value]) for value in range(256)]), values)
    return tf.strings.unsorted_segment_join(strings, places.value_rowids(), tf.size(owners))


def characters_at_bytes(texts: tf.Tensor, owners: tf.Tensor, offsets: tf.Tensor) -> tf.Tensor:
    """Convert byte offsets, int64 [n], into character offsets in `texts[owners]`, int64 [n]."""
    flat, bases = _flat_bytes(texts, owners)
    begins = tf.cast(tf.bitwise.bitwise_and(flat, 0xC0) != 0x80, tf.int32)
    before = tf.concat([[0], tf.cumsum(begins)], 0)
    return tf.cast(tf.gather(before, bases + offsets) - tf.gather(before, bases), tf.int64)


def code_points_at_bytes(texts: tf.Tensor, owners: tf.Tensor, offsets: tf.Tensor) -> tf.Tensor:
    """Return the code points, int32 [n], at byte offsets, int64 [n], of UTF-8 `texts[owners]`."""
    flat, bases = _flat_bytes(texts, owners)
    places = bases + offsets
    flat = tf.pad(flat, [[0, 3]])
    first, *more = (tf.cast(tf.gather(flat, places + byte), tf.int32) for byte in range(4))
    code = first
    # For 1, 2 and 3 bytes after the first one: the least first byte, and the bits of the code point
    # in it. Each byte after the first has 6 bits.
    for further, (least, bits) in enumerate([(0xC0, 5), (0xE0, 4), (0xF0, 3)], start=1):
        long = first % (1 << bits)
        for byte in more[:further]:
            long = long * (1 << 6) + byte % (1 << 6)
        code = tf.where(first >= least, long, code)
    return code


def _flat_bytes(texts: tf.Tensor, owners: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the bytes of all texts, uint8, and where those of `owners` begin there, int64 [n]."""
    flat = tf.io.decode_raw(tf.strings.reduce_join(texts), tf.uint8)
    lengths = tf.cast(tf.strings.length(texts), tf.int64)
    return flat, tf.gather(tf.cumsum(lengths, exclusive=True), owners)
