"""BERT's normalization as a table for tensorflow_text.

tensorflow_text has its own table, but that applies NFKC case folding and turns control characters
into spaces. BERT applies NFD without accents, and drops control characters. So `normalizer_model`
builds another table in the same format, `FastBertNormalizerModel`
(tensorflow_text/core/kernels/fast_bert_normalizer_model.fbs): a trie from the UTF-8 bytes of a code
point to an entry in a pool of strings.

The trie is a double array of darts-clone. A lookup goes from unit to unit, one per byte, without a
search: the children of a node are in a block, and the byte picks the unit in it. Blocks with equal
content are stored once, which keeps the table small although it covers all code points.
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
    (0x3400, 0x4DBF),  # CJK Unified Ideographs Extension A
    (0x4E00, 0x9FFF),  # CJK Unified Ideographs
    (0xF900, 0xFAFF),  # CJK Compatibility Ideographs
    (0x20000, 0x2A6DF),  # Extension B
    (0x2A700, 0x2B73F),  # Extension C
    (0x2B740, 0x2B81F),  # Extension D
    (0x2B820, 0x2CEAF),  # Extension E
    (0x2F800, 0x2FA1F),  # CJK Compatibility Ideographs Supplement
)

_CODE_POINTS = 0x110000
# Without ideographs, Tangut and surrogates, which never change, private use, all of which vanishes,
# and planes without any character: they are 94% of all code points.
_RANGES_THAT_CHANGE = (
    range(1, 0x3400),
    range(0x4DC0, 0x4E00),
    range(0xA000, 0xD800),
    range(0xF900, 0x17000),
    range(0x18D00, 0x20000),
    range(0x2F800, 0x2FA20),  # CJK Compatibility Ideographs Supplement
    range(0xE0000, 0xE0200),  # tags and variation selectors
)
# `normalize_code_point` drops these characters.
PRIVATE_USE = (
    (0xE000, 0xF8FF),
    (0xF0000, 0xFFFFD),
    (0x100000, 0x10FFFD),
)
_DROPPED_CATEGORIES = frozenset({"Cc", "Cf", "Co"})
_SPACE_CATEGORIES = frozenset({"Zs", "Zl", "Zp"})

# Bits of a mapped value, from the highest: "differs from the code point", offset into the pool,
# length in bytes.
_DIFFERS = 1 << 30
_LENGTH_BITS = 6
# Bits of a darts-clone unit: "is a value", offset to the children, "has a leaf", the byte.
_IS_VALUE = 1 << 31
_HAS_LEAF = 1 << 8
_OFFSET_SHIFT = 10
# Units of a block: the root has a child per byte, other nodes one per continuation byte of UTF-8,
# which has six free bits.
_ROOT_BLOCK = 256
_CHILD_BLOCK = 64
_FIRST_CONTINUATION_BYTE = 0x80
_CODE_POINTS_PER_LEAD = 1 << 18  # of sequences of four bytes, whose lead bytes are F0 to F4


def is_ideograph(text: str) -> bool:
    """Return whether a text is a single ideograph, which is always a word of its own."""
    return len(text) == 1 and any(first <= ord(text) <= last for first, last in IDEOGRAPHS)


def normalize_code_point(character: str, *, lowercase: Lowercase) -> str:
    """Normalize one character like BERT does, before it splits text at spaces and punctuation.

    Spaces of any kind become " "; control, format and private-use characters and U+FFFD vanish.
    With `lowercase`, accents are stripped (NFD without category Mn) and letters lower-cased; with
    KEEP_ACCENTS letters are only lower-cased.

    | character | lowercase | result |
    |-----------|-----------|--------|
    | "É"       | True      | "e"    |
    | "É"       | False     | "É"    |
    | U+00A0    | True      | " "    |
    | U+200B    | True      | ""     |
    | "ﬁ"       | True      | "ﬁ"    |

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
    """Yield each code point that `normalize_code_point` changes, and the result.

    Skips U+0000, code points that are not assigned, and PRIVATE_USE.
    """
    for code_point in itertools.chain(*_RANGES_THAT_CHANGE):
        character = chr(code_point)
        category = unicodedata.category(character)
        if category == "Cn":
            continue
        if category == "Lo" and unicodedata.is_normalized("NFD", character):
            continue
        result = normalize_code_point(character, lowercase=lowercase)
        if result != character:
            yield code_point, result


@functools.cache
def normalizer_model(*, lowercase: Lowercase) -> bytes:
    """Return the flatbuffer `FastBertNormalizerModel` that applies `normalize_code_point`."""
    pool, values = _mapped_values(lowercase)
    trie = _utf8_trie(values)
    builder = flatbuffers.Builder(trie.nbytes + len(pool) + 64)
    pool_vector = builder.CreateByteVector(pool)
    trie_vector = builder.CreateNumpyVector(trie)
    # The fields of the table by number: lower_case_nfd_strip_accents, trie_array,
    # data_for_codepoint_zero, mapped_value_pool.
    builder.StartObject(4)
    builder.PrependBoolSlot(0, bool(lowercase), False)
    builder.PrependUOffsetTRelativeSlot(1, trie_vector, 0)
    builder.PrependInt32Slot(2, _DIFFERS, 0)  # U+0000 becomes the empty string
    builder.PrependUOffsetTRelativeSlot(3, pool_vector, 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())


def _mapped_values(lowercase: Lowercase) -> tuple[bytes, np.ndarray]:
    """Return the pool of all different results, and the value of each code point.

    Values are uint32 [code points]; 0 for code points that do not change.
    """
    pool = bytearray()
    value_of: dict[str, int] = {"": _DIFFERS}
    values = np.zeros(_CODE_POINTS, np.uint32)
    for code_point, result in changed_code_points(lowercase=lowercase):
        if result not in value_of:
            encoded = result.encode("utf-8")
            value_of[result] = _DIFFERS | len(pool) << _LENGTH_BITS | len(encoded)
            pool += encoded
        values[code_point] = value_of[result]
    for first, last in PRIVATE_USE:
        values[first : last + 1] = value_of[""]
    return bytes(pool), values


def _utf8_trie(values: np.ndarray) -> np.ndarray:
    """Build a double array that finds the value of a code point by its UTF-8 bytes.

    Every inner node has a block of units, in which the byte picks the unit. Equal values share one
    unit, and equal blocks one place.

    Args:
        values: uint32 [code points], below 2**31; 0 for code points that are not in the trie.

    Returns:
        uint32 [units].
    """
    distinct = np.unique(values[values > 0])
    first_value = 2 * _ROOT_BLOCK  # unit 0 is the root; its children are the second 256 units
    # A unit is found by node ^ offset ^ byte, so blocks begin at multiples of their size.
    padding = -len(distinct) % _CHILD_BLOCK
    units = [0] * first_value + [int(value) | _IS_VALUE for value in distinct] + [0] * padding
    units[0] = _ROOT_BLOCK << _OFFSET_SHIFT
    value_unit = {int(value): first_value + i for i, value in enumerate(distinct)}
    block_at: dict[tuple[int, bytes], int] = {}

    def link(node: int, byte: int, span: np.ndarray) -> None:
        """Make `node` lead to the code points of `span`, all of which begin with its bytes."""
        if not span.any():
            return
        if len(span) == 1:
            units[node] = (node ^ value_unit[int(span[0])]) << _OFFSET_SHIFT | _HAS_LEAF | byte
        else:
            offset = node ^ block(span) ^ _FIRST_CONTINUATION_BYTE
            units[node] = offset << _OFFSET_SHIFT | byte

    def block(span: np.ndarray) -> int:
        """Return the first unit of the block for a span of code points; build it if needed."""
        key = (len(span), span.tobytes())
        if key not in block_at:
            start = len(units)
            block_at[key] = start
            units.extend([0] * _CHILD_BLOCK)
            for i, part in enumerate(np.split(span, _CHILD_BLOCK)):
                link(start + i, _FIRST_CONTINUATION_BYTE + i, part)
        return block_at[key]

    missing = 5 * _CODE_POINTS_PER_LEAD - len(values)
    padded = np.concatenate([values, np.zeros(missing, np.uint32)])
    for byte in range(1, 0x80):
        link(_ROOT_BLOCK + byte, byte, padded[byte : byte + 1])
    # First and last lead byte of sequences of 2, 3 and 4 bytes, and the bits that follow the lead.
    for lead, last_lead, bits in ((0xC0, 0xDF, 6), (0xE0, 0xEF, 12), (0xF0, 0xF4, 18)):
        for byte in range(lead, last_lead + 1):
            span = slice((byte - lead) << bits, (byte - lead + 1) << bits)
            link(_ROOT_BLOCK + byte, byte, padded[span])
    return np.array(units, np.uint32)
