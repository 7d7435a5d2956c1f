"""BERT's normalization as a table for tensorflow_text, whose own trie applies NFKC case folding and
turns control characters into spaces; BERT's is NFD without accents and control characters.
"""

from __future__ import annotations

import functools
import itertools
import unicodedata
from collections.abc import Iterator

import flatbuffers
import numpy as np

from bert_tf.data.text.casing import KEEP_ACCENTS, Lowercase

# First and last code points of the ranges whose characters are words of their own:
# `_is_chinese_char` of google-research/bert tokenization.py.
IDEOGRAPHS = (
    *((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF)),
    *((0x2A700, 0x2B73F), (0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0x2F800, 0x2FA1F)),
)

_CODE_POINTS = 0x110000
# Between these are ideographs, which never change, and planes without any character.
_RANGES_THAT_CHANGE = (
    *(range(1, 0x20000), range(0x2F800, 0x2FA20)),
    *(range(0xE0000, 0xE0200), range(0xF0000, _CODE_POINTS)),
)
_DROPPED_CATEGORIES = frozenset({"Cc", "Cf", "Co"})
_SPACE_CATEGORIES = frozenset({"Zs", "Zl", "Zp"})

# Bits of a mapped value: "differs from the code point", offset into the pool, length in bytes.
_DIFFERS = 1 << 30
_LENGTH_BITS = 6
# Bits of a darts-clone unit: value unit, "has a leaf", offset to the children.
_IS_VALUE = 1 << 31
_HAS_LEAF = 1 << 8
_OFFSET_SHIFT = 10
_ROOT_BLOCK = 256
_CHILD_BLOCK = 64


def is_ideograph(text: str) -> bool:
    return len(text) == 1 and any(first <= ord(text) <= last for first, last in IDEOGRAPHS)


def normalize_code_point(character: str, *, lowercase: Lowercase) -> str:
    """Normalize one character as BERT does before it splits text at spaces and punctuation.

    Spaces of any kind become " "; control, format and private-use characters and U+FFFD vanish;
    with `lowercase`, accents go (NFD without category Mn) and letters become small, with
    KEEP_ACCENTS only the latter.
    Reference: BasicTokenizer of google-research/bert tokenization.py.
    """
    category = unicodedata.category(character)
    if character in "\t\n\r" or category in _SPACE_CATEGORIES:
        return " "
    if category in _DROPPED_CATEGORIES or character == "\ufffd":
        return ""
    if not lowercase:
        return character
    if lowercase == KEEP_ACCENTS:
        return character.lower()
    return "".join(
        part.lower()
        for part in unicodedata.normalize("NFD", character)
        if unicodedata.category(part) != "Mn"
    )


def changed_code_points(*, lowercase: Lowercase) -> Iterator[tuple[int, str]]:
    """All assigned code points but U+0000 that `normalize_code_point` changes, with the results."""
    for code_point in itertools.chain(*_RANGES_THAT_CHANGE):
        character = chr(code_point)
        category = unicodedata.category(character)
        if category in ("Cn", "Cs"):
            continue
        if category == "Lo" and unicodedata.is_normalized("NFD", character):
            continue
        result = "" if category == "Co" else normalize_code_point(character, lowercase=lowercase)
        if result != character:
            yield code_point, result


@functools.cache
def normalizer_model(*, lowercase: Lowercase) -> bytes:
    pool, values = _mapped_values(lowercase)
    trie = _utf8_trie(values)
    builder = flatbuffers.Builder(trie.nbytes + len(pool) + 64)
    pool_vector = builder.CreateByteVector(pool)
    trie_vector = builder.CreateNumpyVector(trie)
    builder.StartObject(4)
    builder.PrependBoolSlot(0, bool(lowercase), False)
    builder.PrependUOffsetTRelativeSlot(1, trie_vector, 0)
    builder.PrependInt32Slot(2, _DIFFERS, 0)  # U+0000 becomes the empty string
    builder.PrependUOffsetTRelativeSlot(3, pool_vector, 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())


def _mapped_values(lowercase: Lowercase) -> tuple[bytes, np.ndarray]:
    """Distinct results end to end, and uint32 [code points]: the place of each one's own, or 0."""
    pool = bytearray()
    value_of: dict[str, int] = {"": _DIFFERS}
    values = np.zeros(_CODE_POINTS, np.uint32)
    for code_point, result in changed_code_points(lowercase=lowercase):
        if result not in value_of:
            encoded = result.encode("utf-8")
            value_of[result] = _DIFFERS | len(pool) << _LENGTH_BITS | len(encoded)
            pool += encoded
        values[code_point] = value_of[result]
    return bytes(pool), values


def _utf8_trie(values: np.ndarray) -> np.ndarray:
    """Build a darts-clone double array from UTF-8 bytes to values, with blocks shared if equal."""
    distinct = np.unique(values[values > 0])
    first_value = 2 * _ROOT_BLOCK  # unit 0 is the root; its children are the second 256 units
    # A block's units are found by node ^ offset ^ byte, so blocks start at multiples of their size.
    padding = -len(distinct) % _CHILD_BLOCK
    units = [0] * first_value + [int(value) | _IS_VALUE for value in distinct] + [0] * padding
    units[0] = _ROOT_BLOCK << _OFFSET_SHIFT
    value_unit = {int(value): first_value + i for i, value in enumerate(distinct)}
    block_at: dict[tuple[int, bytes], int] = {}

    def link(node: int, byte: int, span: np.ndarray) -> None:
        if not span.any():
            return
        if len(span) == 1:
            units[node] = (node ^ value_unit[int(span[0])]) << _OFFSET_SHIFT | _HAS_LEAF | byte
        else:
            units[node] = (node ^ block(span) ^ 0x80) << _OFFSET_SHIFT | byte

    def block(span: np.ndarray) -> int:
        key = (len(span), span.tobytes())
        if key not in block_at:
            start = block_at[key] = len(units)
            units.extend([0] * _CHILD_BLOCK)
            for i, part in enumerate(np.split(span, _CHILD_BLOCK)):
                link(start + i, 0x80 + i, part)
        return block_at[key]

    padded = np.concatenate([values, np.zeros(5 * (1 << 18) - len(values), np.uint32)])
    for byte in range(1, 0x80):
        link(_ROOT_BLOCK + byte, byte, padded[byte : byte + 1])
    for lead, last_lead, bits in ((0xC0, 0xDF, 6), (0xE0, 0xEF, 12), (0xF0, 0xF4, 18)):
        for byte in range(lead, last_lead + 1):
            span = slice((byte - lead) << bits, (byte - lead + 1) << bits)
            link(_ROOT_BLOCK + byte, byte, padded[span])
    return np.array(units, np.uint32)
