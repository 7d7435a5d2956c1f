"""How many values a record's feature has, found without making the record an object.

Wire format: protocol buffers and the messages of tensorflow/core/example, any order of features,
packed or unpacked lists.
"""

from __future__ import annotations

import numba
import numpy as np

_FRAME_HEAD = 12
_TAG_1, _TAG_2, _TAG_3 = 0x0A, 0x12, 0x1A
_ONE_VARINT, _ONE_FLOAT = 0x08, 0x0D


def count_values(content: np.ndarray, records: int, feature: str) -> np.ndarray:
    """Counts the values of a feature in framed records.

    Args:
        content: uint8, whole frames end to end.
        records: how many frames there are.
        feature: its name in the file; an Int64List or a FloatList.

    Returns:
        int32 [records, 2]: all values, and those that are not 0; both -1 where the record has no
        such feature or is no `tf.train.Example`.
    """
    counts = np.full((records, 2), -1, np.int32)
    _count_values(content, np.frombuffer(feature.encode("utf-8"), np.uint8), counts)
    return counts


@numba.njit(cache=True, nogil=True)
def _count_values(content, name, counts):
    start = np.int64(0)
    for record in range(len(counts)):
        length = np.int64(0)
        for byte in range(8):
            length |= np.int64(content[start + byte]) << (8 * byte)
        start += _FRAME_HEAD
        _count_in_example(content, start, start + length, name, counts[record])
        start += length + 4


@numba.njit(cache=True, nogil=True)
def _count_in_example(data, at, end, name, counts):
    """Example.features, its map entries, the entry of that name."""
    tag, features, after = _next_field(data, at, end)
    if tag != _TAG_1:
        return
    while features < after:
        tag, entry, entry_end = _next_field(data, features, after)
        if tag != _TAG_1:
            return
        key_tag, key, key_end = _next_field(data, entry, entry_end)
        if key_tag == _TAG_1 and _equal(data, key, key_end, name):
            value_tag, value, value_end = _next_field(data, key_end, entry_end)
            if value_tag == _TAG_2:
                _count_in_feature(data, value, value_end, counts)
            return
        features = entry_end


@numba.njit(cache=True, nogil=True)
def _count_in_feature(data, at, end, counts):
    kind, at, end = _next_field(data, at, end)
    if kind != _TAG_2 and kind != _TAG_3:
        return
    values = 0
    others = 0
    while at < end:
        tag, first, after = _next_field(data, at, end)
        if tag != _TAG_1 and tag != _ONE_VARINT and tag != _ONE_FLOAT:
            return
        bits = np.uint8(0)
        for position in range(first, after):
            byte = data[position]
            if kind == _TAG_3:
                bits |= byte & np.uint8(0x7F)
                is_last = byte < 0x80
            else:
                bits |= byte
                is_last = (position - first) % 4 == 3
            if is_last:
                values += 1
                others += bits != 0
                bits = np.uint8(0)
        at = after
    counts[0] = values
    counts[1] = others


@numba.njit(cache=True, nogil=True)
def _equal(data, at, end, name):
    return end - at == len(name) and np.array_equal(data[at:end], name)


@numba.njit(cache=True, nogil=True)
def _next_field(data, at, end):
    """Tag, begin and end of the next field's value; the tag is -1 where there is none whole."""
    tag, at = _read_varint(data, at, end)
    if tag < 0:
        return -1, end, end
    kind = tag & 7
    if kind == 2:
        length, at = _read_varint(data, at, end)
        after = at + length if 0 <= length <= end - at else end + 1
    elif kind == 0:
        _, after = _read_varint(data, at, end)
    elif kind == 1 or kind == 5:
        after = at + (8 if kind == 1 else 4)
    else:
        after = end + 1
    if after > end:
        return -1, end, end
    return tag, at, after


@numba.njit(cache=True, nogil=True)
def _read_varint(data, at, end):
    """A number and the place after it; -1 and a place beyond the end where it is cut off."""
    value = np.int64(0)
    for shift in range(0, 70, 7):
        if at >= end:
            break
        byte = data[at]
        at += 1
        if shift < 63:
            value |= np.int64(byte & np.uint8(0x7F)) << shift
        if byte < 0x80:
            return value, at
    return np.int64(-1), end + 1
