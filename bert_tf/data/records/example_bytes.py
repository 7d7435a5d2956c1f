"""Bytes of tf.train.Example and TFRecord frames, for whole batches of examples at once.

Encoding: the lengths of all nested messages are computed first, from the inside out, because
protobuf writes a length before its content. Then all bytes are written from left to right into one
array, without a Python object per example or value. Equal examples have equal bytes, since features
are written in the order of their names.

Nesting of an example, with the tag in front of each length:
`Example.features (1) > Features.feature (1, map entry) > key (1) and Feature (2) > float_list (2)
or int64_list (3) > value (1, packed)`.

Wire formats: protobuf.dev/programming-guides/encoding and tensorflow/core/lib/io/record_writer.h.
"""

from __future__ import annotations

from collections.abc import Iterable

import google_crc32c
import numpy as np

from bert_tf.base.arrays import offsets_of
from bert_tf.base.compiled import numba

# Wire types of protobuf.
_VARINT = 0
_8_BYTES = 1
_LENGTH_DELIMITED = 2
_4_BYTES = 5
# Tags of length-delimited fields: field number x 8 + wire type.
_TAG_1 = 0x0A  # Example.features, Features.feature, a map entry's key, the value of a list
_TAG_2 = 0x12  # a map entry's value, Feature.float_list
_TAG_3 = 0x1A  # Feature.int64_list

FRAME_HEAD = 12  # length uint64, checksum of the length uint32
FRAME_TAIL = 4  # checksum of the record uint32
_CRC_MASK_DELTA = np.uint32(0xA282EAD8)  # TFRecord stores rotated checksums plus this number


def frame_examples(
    features: dict[str, np.ndarray], lengths: dict[str, np.ndarray] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Encode a batch of examples as framed TFRecords.

    Args:
        features: by name, int32 (at least 0) or float32 [rows, values of a row], at least one value
            per row; they become Int64List and FloatList.
        lengths: by name, int [rows], number of values to write of each row; all values are written
            of features without an entry.

    Returns:
        Bytes of all frames, uint8, and offsets where each frame begins and the last one ends,
            int64 [rows + 1].
    """
    names = sorted(features, key=lambda name: name.encode("utf-8"))
    counts = {
        name: np.full(len(features[name]), features[name].shape[1], np.int64) for name in names
    }
    counts |= {name: rows.astype(np.int64) for name, rows in (lengths or {}).items()}
    nested = {name: _nested_lengths(name, features[name], counts[name]) for name in names}
    entries = np.stack([levels[:, 0] for levels in nested.values()])
    messages = _field_sizes(entries).sum(axis=0)
    offsets = offsets_of(FRAME_HEAD + _field_sizes(messages) + FRAME_TAIL)
    frames = np.empty(offsets[-1], np.uint8)
    at = _write_field_heads(frames, offsets[:-1] + FRAME_HEAD, messages)
    for name in names:
        values = np.ascontiguousarray(features[name])
        is_float = values.dtype == np.float32
        tags = (_TAG_1, _TAG_2, _TAG_2 if is_float else _TAG_3, _TAG_1)
        at = _write_feature(
            frames,
            at,
            np.frombuffer(_encoded_key(name), np.uint8),
            np.array(tags, np.uint8),
            nested[name],
            values.view(np.int32),
            counts[name],
            is_float,
        )
    _seal_frames(frames, offsets)
    return frames, offsets


def _nested_lengths(name: str, values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return lengths from the outside in, int64 [rows, 4].

    The map's entry, its Feature, the list in that, and the packed values.
    """
    if values.dtype == np.float32:
        packed = 4 * counts
    else:
        # A varint has 7 bits of the number in each byte.
        packed = counts.copy()
        written = np.arange(values.shape[1]) < counts[:, None]
        for bits in range(7, 32, 7):
            if values.max(initial=0) < 1 << bits:
                break
            packed += np.count_nonzero((values >= 1 << bits) & written, axis=1)
    lists = _field_sizes(packed)
    feature = _field_sizes(lists)
    entry = len(_encoded_key(name)) + _field_sizes(feature)
    return np.stack([entry, feature, lists, packed], axis=1)


def _encoded_key(name: str) -> bytes:
    """Return the field with the key of a map entry."""
    key = name.encode("utf-8")
    if len(key) >= 0x80:
        raise ValueError(f"feature name {name!r}: expected fewer than 128 bytes")
    return bytes([_TAG_1, len(key)]) + key


def _field_sizes(lengths: np.ndarray) -> np.ndarray:
    """Return the bytes of a tag, a length (a varint), and content of that length."""
    sizes = 2 + lengths
    for bits in (7, 14, 21, 28):
        sizes += lengths >= 1 << bits
    return sizes


def _seal_frames(frames: np.ndarray, offsets: np.ndarray) -> None:
    """Write the length and the checksums of each frame around the records."""
    starts = offsets[:-1] + FRAME_HEAD
    stops = offsets[1:] - FRAME_TAIL
    # Few lengths are different, so few checksums of lengths are computed.
    lengths, numbers = np.unique((stops - starts).astype("<u8"), return_inverse=True)
    length_crcs = masked_crcs(length.tobytes() for length in lengths)
    content = frames.tobytes()
    record_crcs = masked_crcs(
        content[start:stop] for start, stop in zip(starts, stops, strict=True)
    )
    _write_numbers(frames, offsets[:-1], lengths[numbers])
    _write_numbers(frames, starts - 4, length_crcs[numbers])
    _write_numbers(frames, stops, record_crcs)


def _write_numbers(frames: np.ndarray, places: np.ndarray, values: np.ndarray) -> None:
    """Write numbers of one dtype as little-endian bytes at `places`, int64 [n]."""
    written = values[:, None].view(np.uint8)
    frames[places[:, None] + np.arange(written.shape[1])] = written


def masked_crcs(contents: Iterable[bytes]) -> np.ndarray:
    """Return checksums as TFRecords store them, uint32 [n]."""
    crcs = np.fromiter(map(google_crc32c.value, contents), "<u4")
    return (crcs >> np.uint32(15) | crcs << np.uint32(17)) + _CRC_MASK_DELTA


@numba.njit(cache=True, nogil=True)
def _write_field_heads(out, at, lengths):
    """Write tag 1 and a length at each place; return the places after them."""
    after = np.empty_like(at)
    for row in range(len(at)):
        out[at[row]] = _TAG_1
        after[row] = _write_varint(out, at[row] + 1, lengths[row])
    return after


@numba.njit(cache=True, nogil=True)
def _write_feature(out, at, key, tags, lengths, values, counts, is_float):
    """Write one feature of every row at its place.

    Args:
        out: uint8, the bytes of all records.
        at: int64 [rows], places in `out`.
        key: uint8, name of the feature.
        tags: uint8 [4], tags of the nested messages: the key and three that end with the values.
        lengths: int64 [rows, 4], bytes of the messages.
        values: int64 [rows, width]; for floats the bits of float32.
        counts: int64 [rows], number of values to write.
        is_float: whether a value takes four bytes; otherwise it is a varint.

    Returns:
        int64 [rows], the places after the features.
    """
    after = np.empty_like(at)
    for row in range(len(at)):
        place = at[row]
        for level in range(4):
            out[place] = tags[level]
            place = _write_varint(out, place + 1, lengths[row, level])
            if level == 0:
                for i in range(len(key)):
                    out[place + i] = key[i]
                place += len(key)
        for i in range(counts[row]):
            value = np.int64(values[row, i])
            if is_float:
                for byte in range(4):
                    out[place + byte] = np.uint8(value >> (8 * byte) & 0xFF)
                place += 4
            else:
                place = _write_varint(out, place, value)
        after[row] = place
    return after


@numba.njit(cache=True, nogil=True)
def _write_varint(out, at, value):
    """Write a number, 7 bits a byte, lowest first; return the place after it."""
    while value >= 0x80:
        out[at] = np.uint8(value & 0x7F | 0x80)
        at += 1
        value >>= 7
    out[at] = np.uint8(value)
    return at + 1


# Tags of a value in a list that is not packed.
_ONE_VARINT = 0x08  # field 1, wire type 0
_ONE_FLOAT = 0x0D  # field 1, wire type 5


def count_values(content: np.ndarray, records: int, feature: str) -> np.ndarray:
    """Count the values of a feature in framed records, without parsing them.

    Packing needs the lengths of all sequences before the first batch. This function walks over the
    fields and skips those of other features, which is much faster than parsing.

    Args:
        content: uint8, complete frames.
        records: number of frames.
        feature: name in the file of an Int64List or a FloatList.

    Returns:
        int32 [records, 2]: number of all values, and of those that are not 0; both -1 if the record
        lacks the feature or is not a `tf.train.Example`.
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
        start += FRAME_HEAD
        _count_in_example(content, start, start + length, name, counts[record])
        start += length + FRAME_TAIL


@numba.njit(cache=True, nogil=True)
def _count_in_example(data, at, end, name, counts):
    """Find the map entry of a name in Example.features, and count its values."""
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
    """Count the values of a list, packed or not; leave `counts` if it is malformed."""
    kind, at, end = _next_field(data, at, end)
    if kind != _TAG_2 and kind != _TAG_3:
        return
    values = 0
    nonzero = 0
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
                if bits != 0:
                    nonzero += 1
                bits = np.uint8(0)
        at = after
    counts[0] = values
    counts[1] = nonzero


@numba.njit(cache=True, nogil=True)
def _equal(data, at, end, name):
    return end - at == len(name) and np.array_equal(data[at:end], name)


@numba.njit(cache=True, nogil=True)
def _next_field(data, at, end):
    """Return tag, begin and end of the next field's value; the tag is -1 if it is cut."""
    tag, at = _read_varint(data, at, end)
    if tag < 0:
        return -1, end, end
    kind = tag & 7
    if kind == _LENGTH_DELIMITED:
        length, at = _read_varint(data, at, end)
        after = at + length if 0 <= length <= end - at else end + 1
    elif kind == _VARINT:
        _, after = _read_varint(data, at, end)
    elif kind == _8_BYTES:
        after = at + 8
    elif kind == _4_BYTES:
        after = at + 4
    else:
        after = end + 1
    if after > end:
        return -1, end, end
    return tag, at, after


@numba.njit(cache=True, nogil=True)
def _read_varint(data, at, end):
    """Return a number and the place after it; -1 and a place beyond `end` if it is cut off."""
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
