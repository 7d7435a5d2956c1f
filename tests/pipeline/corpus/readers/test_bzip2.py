"""Blocks of bzip2 files against `bz2`, from any of them on, whatever program wrote them."""

import bz2
import io
import random

import numpy as np
import pytest

from bert_tf.base.errors import InputError
from pipeline.corpus.readers import bzip2
from pipeline.corpus.readers.bzip2 import BlockStream, read_blocks


def text(size, seed=1):
    """Bytes that compress, but not to nothing."""
    words = [b"%x " % number for number in random.Random(seed).choices(range(5000), k=size // 4)]
    return b"".join(words)[:size]


def streams(data):
    return {
        "small": bz2.compress(data[:1000]),
        "blocks of 100 kB": bz2.compress(data, 1),
        "one stream a part": b"".join(
            bz2.compress(data[begin : begin + 70_001], level)
            for begin, level in zip(range(0, len(data), 70_001), [1, 9, 5] * 9, strict=False)
        ),
        "an empty stream between": bz2.compress(data[:500])
        + bz2.compress(b"")
        + bz2.compress(b"x"),
        "empty": bz2.compress(b""),
        "one byte over and over": bz2.compress(b"a" * 5_000_000, 1),
    }


@pytest.mark.parametrize("chunk", [501, 1 << 22])
@pytest.mark.parametrize("name", streams(b""))
def test_blocks_are_what_bz2_reads(name, chunk, monkeypatch):
    monkeypatch.setattr(bzip2, "_CHUNK_BYTES", chunk)
    stored = streams(text(250_000))[name]
    blocks = list(read_blocks(io.BytesIO(stored), "x"))
    assert b"".join(data for _, data in blocks) == bz2.decompress(stored)
    for number, (bit, _) in enumerate(blocks):
        assert list(read_blocks(io.BytesIO(stored), "x", first_bit=bit)) == blocks[number:]


def test_a_stream_knows_which_block_holds_a_byte():
    data = text(400_000)
    stored = bz2.compress(data, 1)
    stream = BlockStream(read_blocks(io.BytesIO(stored), "x"))
    assert stream.read(150_000) + stream.read(10**9) == data
    assert stream.read(1) == b""
    for offset in (0, 99_000, 150_000, 399_999):
        bit, begin = stream.block_of(offset)
        rest = BlockStream(read_blocks(io.BytesIO(stored), "x", first_bit=bit))
        rest.read(offset - begin)
        assert rest.read(10) == data[offset : offset + 10]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[:-12], "it is cut short"),
        (lambda data: data[: len(data) // 2], "it is cut short"),
        (lambda data: b"", "it does not begin as a bzip2 file"),
        (lambda data: b"nonsense", "it does not begin as a bzip2 file"),
        (lambda data: data[:30_000] + b"xxxx" + data[30_004:], "bad block at byte 4"),
    ],
)
def test_damage_is_reported(damage, message):
    stored = damage(bz2.compress(text(400_000), 1))
    with pytest.raises(InputError, match=rf"x.bz2: cannot be read to its end \({message}"):
        list(read_blocks(io.BytesIO(stored), "x.bz2"))


def test_a_mark_inside_a_block_by_chance_does_not_cut_it(monkeypatch):
    """A chance of 2^-48 a bit, so the scan is made to see one."""
    data = text(250_000)
    scan = bzip2._scan
    stored = bz2.compress(data, 1)
    first, second, *_ = [bit for bit, _ in read_blocks(io.BytesIO(stored), "x")]

    def scan_with_a_false_mark(chunk, window):
        bits, are_ends, window = scan(chunk, window)
        between = (first + second) // 2 + 3
        return (
            np.insert(bits, 1, between),
            np.insert(are_ends, 1, False),
            window,
        )

    monkeypatch.setattr(bzip2, "_scan", scan_with_a_false_mark)
    assert b"".join(part for _, part in read_blocks(io.BytesIO(stored), "x")) == data


BLOCK_MARK, END_MARK = f"{0x314159265359:048b}", f"{0x177245385090:048b}"


def overlapping(marks):
    """The bits of marks, each as near to the one before as it can be, and where each begins."""
    bits, begins = "", []
    for mark in marks:
        begin = max(begins[-1] + 1 if begins else 0, len(bits) - len(mark))
        while not mark.startswith(bits[begin:]):
            begin += 1
        bits = bits[:begin] + mark
        begins.append(begin)
    return bits, begins


def bytes_of(bits):
    """Filled up with ones."""
    size = -(-len(bits) // 8)
    return int(bits.ljust(8 * size, "1"), 2).to_bytes(size, "big")


@pytest.mark.parametrize(
    "marks",
    [
        [BLOCK_MARK] * 64,
        [END_MARK] * 64,
        [END_MARK, BLOCK_MARK] * 32,
        [END_MARK] * 2 + [BLOCK_MARK],
    ],
    ids=["blocks", "ends", "both", "three"],
)
@pytest.mark.parametrize("shift", [0, 3])
def test_there_is_room_for_marks_that_overlap(marks, shift):
    bits, begins = overlapping(marks)
    data = bytes_of("1" * shift + bits)
    # Not compiled, it does not write beyond the end of an array without a word.
    found, are_ends, _ = bzip2._scan.py_func(np.frombuffer(data, np.uint8), np.uint64(0))
    assert found.tolist() == [shift + begin for begin in begins]
    assert are_ends.tolist() == [mark == END_MARK for mark in marks]


def test_a_file_of_marks_alone_is_damaged():
    data = b"BZh9" + bytes_of(overlapping([BLOCK_MARK] * 4000)[0])
    with pytest.raises(InputError, match="bad block at byte 4"):
        list(read_blocks(io.BytesIO(data), "x.bz2"))
