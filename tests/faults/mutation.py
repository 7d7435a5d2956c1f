"""Invents inputs: changes bits, ranges, numbers and words of valid ones, and nests deeply."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

_NUMBER = re.compile(rb"-?\d+")
_WHOLE = (0, -1, 1, 255, 2**31, -(2**31), 2**32, 2**63, -(2**63), 2**64, 10**30)
_NUMBERS = (
    *(str(number).encode() for number in _WHOLE),
    *(b"1e999", b"-0.0", b"NaN", b"Infinity", b"1" * 5000, b"00", b"1_0", "٣".encode()),
)
WORDS = (
    b"\0", b"\n", b"\r", b"\r\n", b"\t", b" ", b'"', b"'", b'""', b"\\", b",", b":", b"{", b"}",
    b"[", b"]", b"<", b">", b"&", b"#", b"-", b"*", b"!!", b"|", b"%", b"=", b"\xff", b"\xc0\x80",
    b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\x85", b"\x1a", b"\x1b[31m",
    b"\\ud800", b"\\u0000", b"null", b"true", b"{}", b"[]", b'"\\ud800"',
    "\u2028".encode(), "\u202e".encode(), "e\u0301".encode(), "İ".encode(), "\U0001f600".encode(),
    "\U0010ffff".encode(), "ﷺ".encode(),
)  # fmt: skip
_DEEP = 20_000
_LONGEST = 1 << 20


def mutated(random: Random, seeds: Sequence[bytes], words: Sequence[bytes] = ()) -> bytes:
    """One of the seeds after one or a few changes."""
    data = bytearray(random.choice(seeds))
    while True:
        _change(random, data, seeds, random.choice((WORDS, words or WORDS)))
        if random.random() < 0.6 or len(data) > _LONGEST:
            return bytes(data)


def _change(
    random: Random, data: bytearray, seeds: Sequence[bytes], words: Sequence[bytes]
) -> None:
    at = random.randrange(len(data) + 1)
    end = min(len(data), at + int(random.expovariate(0.1)) + 1)
    match random.randrange(10):
        case 0 | 1 if at < len(data):
            data[at] ^= 1 << random.randrange(8)
        case 2:
            del data[at:end]
        case 3 | 4:
            data[at:at] = random.choice(words)
        case 5:
            data[at:end] = random.choice(words) * random.choice((1, 2, 100))
        case 6:
            other = random.choice(seeds)
            start = random.randrange(len(other) + 1)
            data[at:end] = other[start : start + int(random.expovariate(0.02))]
        case 7 if numbers := list(_NUMBER.finditer(data)):
            found = random.choice(numbers)
            data[found.start() : found.end()] = random.choice(_NUMBERS)
        case 8:
            data[at:at] = data[at:end] * random.choice((1, 3, 50))
        case 9 if random.random() < 0.1:
            if random.random() < 0.5:
                del data[at:]
            else:
                data[at:at] = random.choice(words) * (_DEEP if random.random() < 0.05 else 500)
        case _:
            data[at:end] = random.randbytes(end - at)
