"""Guess the encoding or format of files that are not UTF-8.

There is no exact way. All encodings are tried, and the bytes must read like a language. Multi-byte
encodings of East Asia are judged by the share of common characters (the first level of their
standards). One-byte encodings are judged by the share of non-ASCII characters that belong to one
alphabet and are in places where such letters can be.
"""

from __future__ import annotations

import codecs
import functools
import re
import unicodedata
from collections.abc import Callable

from bert_tf.base.files import toml_beside

_KNOWN = toml_beside(__file__, "encodings.toml")
_TAR_MARK = slice(257, 262)
_ISO_2022 = (
    (re.compile(rb"\x1b\$[@B]|\x1b\([JI]"), "iso-2022-jp"),
    (re.compile(rb"\x1b\$\)C"), "iso-2022-kr"),
)
_TEXT_CONTROLS = b"\t\n\v\f\r\x1a\x1b"
_CONTROLS = bytes(set(range(32)) - set(_TEXT_CONTROLS))
# Shares of the bytes of a text. Control characters except NUL separate fields of some tables.
_MOST_NUL = 0.01
_MOST_CONTROLS = 0.3
# Stray bytes in a text of any length, unless they are all of it.
_STRAY = 2
_MOST_STRAY = 0.25
_WIDE = {2: ("utf-16-le", "utf-16-be"), 4: ("utf-32-le", "utf-32-be")}
# Of the characters of a text.
_LEAST_USUAL = 0.01
_MOST_ODD = 0.02
_LEAST_SOUND = 0.9  # of the characters that are not ASCII; the others are mistakes
_LEAST_WIDE = 0.5  # of the characters that are not ASCII, in text of East Asia
_LEAST_KANA = 0.1  # of the wide characters in Japanese; Chinese and Korean have none
_LEAST_LEAD = 0.001  # by which a later encoding must read better; else the first of equals is taken
# Penalties in `_soundness`, as shares of a character. Rare letters tell a wrong encoding of another
# script; capitals tell one whose upper and lower case are exchanged, as in KOI8-R read as cp1251.
_RARE_LETTER = 0.3
_CAPITAL = 0.05
# Codes of DOS and old Macs have letters nearly everywhere, so that much looks like text in them.
_OLD = ("iso-8859-2", "mac-roman", "cp850", "cp437")
_LEAST_SOUND_OF_OLD = 0.97
_LEAST_LETTERS_OF_OLD = 4

_LATIN = frozenset(
    "".join(
        letters
        for name in ("western", "central", "baltic", "turkish")
        for letters in _KNOWN["alphabets"][name]
    )
)
# The letters that make up three quarters of texts in these scripts. Two encodings may both make
# letters of the bytes, but only one of them the frequent ones.
_FREQUENT = frozenset("оаеинтсрвлкмдпіуαοιετσνηρπκυμλςίόάיוהאלרתמשבנاليمنورتبعدةานรอกเงมยลวทส่้ัี")
# Scripts that write vowels have them in two of five letters.
_VOWELS = frozenset("аеёиоуыэюяіїєαεηιουωάέήίόύώϊϋΐΰ")
_LEAST_VOWELS = 0.25
_LEAST_LETTERS = 8  # of another script than Latin: fewer may be anything
_INSIDE_WORDS = frozenset("’–—…\u00ad·")
_SYMBOLS = frozenset("•©®™°§№€£")
_AROUND_WORDS = _INSIDE_WORDS | _SYMBOLS | frozenset("“”„«»‘‚‹›¡¿\u00a0")


def file_kind(head: bytes) -> tuple[str, str] | None:
    """Return the kind of a file that is not text, and advice; None for text.

    Args:
        head: the first bytes.

    Returns:
        The kind with its article, and advice, in which `{name}` stands for the file name.
    """
    if head[_TAR_MARK] == b"ustar":
        return "a tar archive", "unpack it: tar -xf {name}"
    for mark, kind, advice in _KNOWN["signatures"]:
        if re.match(mark.encode(), head):
            inside = _KNOWN["zip_contents"] if head.startswith(b"PK") else ()
            for part, kind_inside, advice_inside in inside:
                if part.encode() in head:
                    return kind_inside, advice_inside
            return kind, advice
    return None


def has_too_many_controls(sample: bytes) -> bool:
    """Whether a sample is not text: too many NUL or other control characters.

    A few are allowed as mistakes in a text of any length: _STRAY of them, and at most the share
    _MOST_STRAY of a short text.
    """
    stray = min(_STRAY, _MOST_STRAY * len(sample))
    if sample.count(0) > max(stray, _MOST_NUL * len(sample)):
        return True
    return control_count(sample) > max(stray, _MOST_CONTROLS * len(sample))


def control_count(sample: bytes) -> int:
    """Count control characters other than those of _TEXT_CONTROLS; NUL is one of them."""
    return len(sample) - len(sample.translate(None, _CONTROLS))


def is_utf8(sample: bytes) -> bool:
    """Whether bytes are UTF-8, up to a character cut at their end."""
    return _decoded(sample, "utf-8") is not None


def escaping_encoding(sample: bytes) -> str | None:
    """Name the encoding of a sample that has escape sequences of ISO-2022; None if it has none."""
    return next((name for escape, name in _ISO_2022 if escape.search(sample)), None)


def wide_encoding(sample: bytes) -> str | None:
    """Name the UTF-16 or UTF-32 without byte-order mark that a sample is text in, if any."""
    for width in (4, 2):
        shares = {name: _usual(_decoded(sample, name)) for name in _WIDE[width]}
        best = max(shares, key=shares.__getitem__)
        if shares[best] >= _LEAST_USUAL:
            return best
    return None


# Unassigned, private, surrogate and control characters, by their general category in Unicode
_ODD_CATEGORIES = ("Cn", "Co", "Cs", "Cc")


def _usual(text: str | None) -> float:
    """Return the fraction of blanks and marks in a text; 1.0 for ASCII, 0.0 if it cannot be text.

    A text of the wrong width or byte order has few of them, and many unassigned characters.
    """
    if not text:
        return 0.0
    odd = sum(unicodedata.category(character) in _ODD_CATEGORIES for character in text)
    odd -= sum(map(text.count, "\n\r\t"))
    if odd > _MOST_ODD * len(text):
        return 0.0
    if text.isascii():  # a word or two have no blank
        return 1.0
    return sum(map(text.count, " \n\r\t.,，。、」")) / len(text)


def likely_encoding(lines: bytes) -> str | None:
    """Name the encoding that lines are likely written in; None if they are text in none.

    Args:
        lines: whole lines, none of them UTF-8.
    """
    return escaping_encoding(lines) or _east_asian_encoding(lines) or _one_byte_encoding(lines)


def _decoded(sample: bytes, encoding: str) -> str | None:
    """Decode a sample, up to a character cut at its end; None if it is not of the encoding."""
    try:
        return codecs.getincrementaldecoder(encoding)().decode(sample)
    except UnicodeError:
        return None


@functools.cache
def _level(encoding: str, first: int, last: int) -> frozenset[str]:
    """Return the characters of an encoding with a first byte from `first` to before `last`."""
    codes = (bytes([lead, trail]) for lead in range(first, last) for trail in range(0x40, 0xFF))
    return frozenset(code.decode(encoding, "ignore") for code in codes)


# Names of an encoding and its extensions, and the characters that are common in it
_EAST_ASIAN: tuple[tuple[tuple[str, ...], Callable[[], frozenset[str]]], ...] = (
    (("euc-kr", "cp949"), lambda: _level("euc-kr", 0xB0, 0xC9)),
    (("euc-jp",), lambda: _level("euc-jp", 0xA4, 0xD0)),
    (("shift_jis", "cp932"), lambda: _level("euc-jp", 0xA4, 0xD0)),
    (("gb18030",), lambda: _level("gb2312", 0xB0, 0xD8)),
    (("big5", "cp950", "big5hkscs"), lambda: _level("big5", 0xA4, 0xC7)),
)


def _east_asian_encoding(lines: bytes) -> str | None:
    """Name the first encoding in which nearly all wide characters are common ones of its language.

    Kana tell Japanese from Chinese: every Japanese text has them.
    """
    for names, common in _EAST_ASIAN:
        for name in names:
            text = _decoded(lines, name)
            if text is None:
                continue
            wide = list(filter(_is_wide_letter, text))
            sound = sum(letter in common() for letter in wide)
            kana = sum("ぁ" <= letter <= "ヿ" for letter in wide)
            is_japanese = name in ("euc-jp", "shift_jis", "cp932")
            not_ascii = sum(character >= "\x80" for character in text)
            if (
                wide
                and sound >= _LEAST_SOUND * len(wide)
                and len(wide) >= _LEAST_WIDE * not_ascii
                and (kana > _LEAST_KANA * len(wide)) == is_japanese
            ):
                return name
    return None


def _is_wide_letter(character: str) -> bool:
    """Whether a character is a letter of East Asia, not punctuation or a wide form of ASCII."""
    if character < "\u2e80":
        return False
    is_punctuation = "\u3000" <= character <= "\u303f"
    is_wide_ascii = "\uff00" <= character <= "\uff60"
    return not is_punctuation and not is_wide_ascii


def _one_byte_encoding(lines: bytes) -> str | None:
    """Name the encoding that reads the lines best with one alphabet; the first of equals."""
    best: str | None = None
    highest = 0.0
    for name, script in _KNOWN["encodings"]:
        text = _decoded(lines, name)
        if text is None:
            continue
        for alphabet in _KNOWN["alphabets"][script]:
            sound, usual = _soundness(text, frozenset(alphabet))
            is_old = name in _OLD
            if is_old and _letter_count(text, alphabet) < _LEAST_LETTERS_OF_OLD:
                continue
            least = _LEAST_SOUND_OF_OLD if is_old else _LEAST_SOUND
            if sound >= least and usual > highest + _LEAST_LEAD:
                best = name
                highest = usual
    return best


def _letter_count(text: str, alphabet: str) -> int:
    return sum(character in alphabet for character in text.lower())


def _is_ascii_letter(character: str) -> bool:
    return character.isascii() and character.isalpha()


def _soundness(text: str, alphabet: frozenset[str]) -> tuple[float, float]:
    """Return how well a text reads in an alphabet, as two fractions from 0.0 to 1.0.

    Returns:
        The fraction of non-ASCII characters that are letters of the alphabet, or marks, in a
        possible place; and the same with a discount for rare letters and capitals, by which
        encodings are compared.
    """
    is_latin = alphabet <= _LATIN
    letters = [letter for letter in text.lower() if letter.isalpha()]
    others = [letter for letter in letters if letter >= "\x80"]
    if is_latin and 2 * len(others) > len(letters):  # most letters of Latin texts are ASCII
        return 0.0, 0.0
    if not is_latin and len(others) < _LEAST_LETTERS:
        return 0.0, 0.0
    vowels = sum(letter in _VOWELS for letter in others)
    if alphabet & _VOWELS and vowels < _LEAST_VOWELS * len(others):
        return 0.0, 0.0
    characters = 0
    sound = 0
    rare = 0.0
    for before, character, after in zip(" " + text, text, text[1:] + " ", strict=False):
        if character < "\x80":
            continue
        characters += 1
        if not character.isalpha() and not unicodedata.combining(character):
            is_inside = before.isalpha() and after.isalpha()
            is_odd = character in _SYMBOLS and not alphabet.isdisjoint((before + after).lower())
            usual_marks = _INSIDE_WORDS if is_inside else _AROUND_WORDS
            if not is_odd and character in usual_marks:
                sound += 1
        elif character.lower() in alphabet and not (before.islower() and character.isupper()):
            if is_latin or not (_is_ascii_letter(before) or _is_ascii_letter(after)):
                sound += 1
            if not is_latin and character.lower() not in _FREQUENT:
                rare += _RARE_LETTER
            if character.isupper():
                rare += _CAPITAL
    return (sound / characters, (sound - rare) / characters) if characters else (0.0, 0.0)
