"""Replaces personal data by fixed words: e-mail and IP addresses, phone numbers, IBANs, cards.

Most lines have none, so a compiled loop finds those that may have a value (`find_suspects`), and
only these are searched by patterns. Numbers count only if their check digits hold (IBAN: ISO 7064,
card: Luhn) or the library `phonenumbers` finds them valid; addresses only if they are public.
"""

from __future__ import annotations

import dataclasses
import functools
import ipaddress
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from bert_tf.base.arrays import offsets_of
from bert_tf.base.compiled import numba
from bert_tf.base.errors import UsageError
from bert_tf.config.sections.data import CorpusSection, listed
from pipeline.corpus.characters import code_point_table, decode
from pipeline.corpus.raw_block import gather

# In the order of their search. Words of letters, of which each can be a token of a vocabulary.
WORDS = {
    "email": "emailaddress", "iban": "bankaccount", "card": "cardnumber", "ip": "ipaddress",
    "phone": "phonenumber",
}  # fmt: skip
_Spans = Iterator[tuple[int, int]]

# As datatrove's PIIFormatter, but: letters up to Cyrillic count, beside any script;
# a domain does not end in a number, as versions do (`numpy@1.26`); and repeats are bounded.
_LETTER = "0-9A-Za-z\u00c0-\u052f"
_ATOM = rf"[{_LETTER}_!#$%&'*+/=?^`{{|}}~-]"
_LABEL = rf"(?:[{_LETTER}-]{{0,61}}[{_LETTER}])?"
_EMAIL = re.compile(
    rf"(?<![{_LETTER}_])[{_LETTER}_]{_ATOM}{{0,63}}+(?:\.{_ATOM}{{1,63}}+){{0,15}}"
    rf"(?:@(?:(?:[{_LETTER}]{_LABEL}\.){{1,8}}[A-Za-z\u00c0-\u052f]{_LABEL}"
    r"|\[(?:[0-9]{1,3}\.){3}[0-9]{1,3}\]))+"
)
# From here on, looking back follows the first character, by which `re` searches five times as fast.
_ADDRESS = re.compile(
    r"[0-9](?<![0-9A-Za-z_.].)(?:"
    r"[0-9]{0,2}\.(?:[0-9]{1,3}\.){2}[0-9]{1,3}(?![0-9A-Za-z_]|\.[0-9])|"
    r"(?<=[23])(?<!:.)[0-9A-Fa-f]{3}(?::{1,2}[0-9A-Fa-f]{1,4}){1,7}(?:::)?"
    r"(?![0-9A-Za-z_]|:[0-9A-Za-z:]))"
)
# Characters of the accounts of each country (ISO 13616, release 101 of the registry).
_ACCOUNTS = {
    15: "NO", 16: "BE", 18: "DK FI FK FO GL NL SD", 19: "MK SI", 20: "AT BA EE KZ LT LU MN XK",
    21: "CH HR LI LV", 22: "BG BH CR DE GB GE IE ME RS VA", 23: "AE GI IL IQ OM SO TL",
    24: "AD CZ ES MD PK RO SA SE SK TN VG", 25: "LY PT ST", 26: "IS TR",
    27: "BI DJ FR GR IT MC MR SM", 28: "AL AZ BY CY DO GT HN HU LB NI PL SV", 29: "BR EG PS QA UA",
    30: "JO KW MU YE", 31: "MT SC", 32: "LC", 33: "RU",
}  # fmt: skip
_IBAN = re.compile(
    "[A-Z](?<![0-9A-Za-z].)[A-Z][0-9]{2}(?:"
    + "|".join(
        rf"(?<={'..|'.join(countries.split())}..)(?:[ -]?[0-9A-Z]){{{length - 4}}}"
        for length, countries in _ACCOUNTS.items()
    )
    + ")(?![0-9A-Za-z])"
)
# By issuer: Visa, Mastercard, Discover, Maestro, UnionPay, JCB; American Express, Diners Club.
_CARD = re.compile(
    r"[2-6](?<![0-9A-Za-z_.].)[0-9]{3}(?:(?<=4...|5[0-8]..|2[2-7]..|6...|35..)"
    r"([ -]?)(?:[0-9]{4}\1){2}(?:[0-9]{4}(?:\1[0-9]{3})?|[0-9])|"
    r"(?<=3[4-9]..|30[0-5].)([ -]?)[0-9]{6}\2[0-9]{4,5})(?![0-9A-Za-z_]|\.[0-9])"
)
# Characters between the digits of a phone number, as in `phonenumbers`.
_BETWEEN = (
    "[- x+()\\[\\]./~\u00a0\u00ad\u2010-\u2015\u200b\u2053\u2060\u2212\u223c\u3000\u30fc"
    "\uff08\uff09\uff0b\uff0d-\uff0f\uff3b\uff3d\uff5e]"
)
_DIGITS = re.compile(rf"\d(?:{_BETWEEN}{{0,4}}\d){{6,}}")
# A run of more digits is a row of a table, unless `phonenumbers` would cut it at these marks.
_MOST_DIGITS = 19
_CUTS = re.compile("[(/+\uff08\uff0b\u2012-\u2015\uff0d]|\\s-|-\\s|\\S{7}")
# Characters before the first digit of a phone number and after the last that may belong to it.
_LEAD = 9
_EXTENSION = 24
_LOOK_BACK = 24  # characters before a number that may tell its kind
# Digits after a decimal point; the rest of a time of day with its zone.
_FRACTION = re.compile(r"[0-9](?:\.|:[0-9]{0,2})\Z")
# Words before numbers that are no addresses and phone numbers.
_BEFORE_NUMBER = re.compile(
    r"(?:\b(?:section|sec|chapter|ch|clause|article|art|paragraph|part|appendix|annex|figure|fig"
    r"|table|rule|item|version|no|nr|number|rfc|isbn|issn|order|model|serial|id)s?\b\.?|§)"
    r"[ \t:#]*(?:(?:no|nr|number)\b\.?[ \t]*)?\Z",
    re.IGNORECASE,
)
# Words before phone numbers, in several languages; the second are beginnings of words.
_PHONE_WORD = re.compile(
    r"(?:\b(?:tel|phones?|telephone|call|fax|mobile|mob|cell|dial|whatsapp|sms|hotline|handy|fon|puh"
    r"|contacts?|reach|my[ \t]+n(?:umber|o))\b"
    r"|\b(?:t[ée]l[ée]fon|llam|m[óo]vil|celular|chiam|portable|тел|моб|звон|факс|τηλ)"
    r"|電|电|手机|携帯|전화|هاتف|फ़?ोन|โทร|☎|📞)[^\n]*\Z",
    re.IGNORECASE,
)
# `git@host:owner/name` or `git@host:name.git`; other text may follow an address after a colon.
_REMOTE_PATH = re.compile(r":(?:[\w~.-]*/|[\w.-]+\.git\b)")
_URL_START = re.compile(r"(?<!mailto)://\Z", re.IGNORECASE)
# The text after the number of a section in a heading: a capitalized word, and no sentence.
_HEADING = re.compile(r"\.?[ \t]+[A-Z][a-z][^\n.!?]{0,60}(?=\n|\Z)")
_MOST_SECTIONS = 100


def _is_public(text: str) -> bool:
    """Return whether an IP address is one of the internet."""
    try:
        return ipaddress.ip_address(text).is_global
    except ValueError:
        return False


def _is_account(text: str) -> bool:
    """Return whether an IBAN's check digits hold.

    As a number, with letters from 10 on and its first four characters last, it is 1 modulo 97.
    """
    account = re.sub("[ -]", "", text)
    rotated = account[4:] + account[:4]
    number = int("".join(str(int(character, 36)) for character in rotated))
    return number % 97 == 1


def _is_card(text: str) -> bool:
    """Return whether a card's check digit holds (Luhn: from the right, every second is doubled)."""
    digits = [int(character) for character in reversed(text) if character.isdigit()]
    doubled = [2 * digit for digit in digits[1::2]]
    digit_sums = [number // 10 + number % 10 for number in doubled]
    return (sum(digits[::2]) + sum(digit_sums)) % 10 == 0


_PATTERNS: dict[str, tuple[re.Pattern[str], Callable[[str], bool]]] = {
    "email": (_EMAIL, bool),
    "iban": (_IBAN, _is_account),
    "card": (_CARD, _is_card),
    "ip": (_ADDRESS, _is_public),
}


def _find(kind: str, text: str) -> _Spans:
    """Yield begin and end of the values of a kind with a pattern."""
    pattern, is_valid = _PATTERNS[kind]
    is_other = {"email": _is_remote_path, "ip": _is_section}.get(kind)
    for match in pattern.finditer(text):
        if is_valid(match[0]) and not (is_other and is_other(text, *match.span())):
            yield match.span()


def _is_remote_path(text: str, start: int, stop: int) -> bool:
    """Whether `git@host` is a part of `git@host:path` or `ssh://git@host`."""
    is_path = _REMOTE_PATH.match(text, stop) is not None
    return is_path or _URL_START.search(text, max(start - _LOOK_BACK, 0), start) is not None


def _is_section(text: str, start: int, stop: int) -> bool:
    """Whether four numbers are those of a section, in a reference or in its heading."""
    if _BEFORE_NUMBER.search(text, max(start - _LOOK_BACK, 0), start):
        return True
    is_heading = (start == 0 or text[start - 1] == "\n") and _HEADING.match(text, stop)
    return bool(is_heading) and max(map(int, text[start:stop].split("."))) < _MOST_SECTIONS


def _is_other_number(text: str, start: int, stop: int) -> bool:
    """Whether a match of the library is no phone number, but a fraction, a time, a hash or a part.

    Digits without any separator are a phone number only if a word before them says so, or if they
    begin like dialed numbers (`+`, 0). No section or order has a number that begins with `+`.
    """
    if _FRACTION.search(text, max(start - _LOOK_BACK, 0), start):
        return True
    if text[start] in "+\uff0b":
        return False
    if _PHONE_WORD.search(text, max(start - _LOOK_BACK, 0), start):
        return False
    if _BEFORE_NUMBER.search(text, max(start - _LOOK_BACK, 0), start):
        return True
    value = text[start:stop]
    return value.isdigit() and value[0] != "0"


def _find_phones(region: str | None, text: str) -> _Spans:
    """Yield begin and end of phone numbers.

    The library is shown only runs of digits, because its time grows with the square of a text.

    Args:
        region: whose numbers need no country code; None for none.
        text: to search.
    """
    from phonenumbers import Leniency, PhoneNumberMatcher

    done = 0
    for run in _DIGITS.finditer(text):
        num_digits = sum(map(str.isdigit, run[0]))
        if num_digits > _MOST_DIGITS and not _CUTS.search(run[0]):
            continue
        begin = max(run.start() - _LEAD, done)
        part = text[begin : run.end() + _EXTENSION]
        for match in PhoneNumberMatcher(part, region, Leniency.VALID, sys.maxsize):
            value = match.raw_string
            start = begin + match.start
            stop = start + len(value)
            is_in_run = start < run.end() and stop > run.start()
            is_book = "ISBN" in text[max(start - _LEAD, 0) : start]
            if is_in_run and not is_book and not _is_other_number(text, start, stop):
                done = stop
                # In "(see 030 1234567" the bracket belongs to the sentence.
                if value[0] == "(" and value.count("(") > value.count(")"):
                    start += 1
                yield start, done


@dataclasses.dataclass(frozen=True)
class PersonalData:
    """Which personal data is replaced.

    Attributes:
        kinds: keys of `WORDS`.
        regions: codes of countries whose phone numbers need no country code.
    """

    kinds: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()

    @classmethod
    def from_config(cls, config: CorpusSection) -> PersonalData:
        """Read the config's keys `personal_data` and `phone_regions`.

        Raises:
            UsageError: a region is unknown.
        """
        names = listed(config.personal_data)
        kinds = tuple(WORDS) if "all" in names else tuple(kind for kind in WORDS if kind in names)
        regions = tuple(listed(config.phone_regions)) if "phone" in kinds else ()
        if regions:
            from phonenumbers import SUPPORTED_REGIONS

            unknown = set(regions) - SUPPORTED_REGIONS
            if unknown:
                raise UsageError(
                    f"phone_regions: no region {min(unknown)!r}; expected ISO codes of countries, "
                    "such as US, GB and DE"
                )
        return cls(kinds, regions)

    def replace(
        self, data: np.ndarray, starts: np.ndarray, stops: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, int]]:
        """Replace the values in lines of clean UTF-8.

        Args:
            data: uint8.
            starts, stops: int64 [lines], bytes of each.

        Returns:
            Data, starts and stops of the new lines, and the number of values of each kind.
        """
        suspects = np.flatnonzero(find_suspects(data, starts, stops) if self.kinds else False)
        if not len(suspects):
            return data, starts, stops, {}
        # All suspects are one text, since each search costs the same for a short one.
        lines = gather(data, starts[suspects], stops[suspects]).to_pylist()
        text, counts = self.replace_in("\n".join(lines))
        changed = [line.encode() for line in text.split("\n")]
        bounds = offsets_of(np.array([len(line) for line in changed], np.int64)) + len(data)
        starts = starts.copy()
        stops = stops.copy()
        starts[suspects] = bounds[:-1]
        stops[suspects] = bounds[1:]
        data = np.concatenate([data, np.frombuffer(b"".join(changed), np.uint8)])
        return data, starts, stops, counts

    def replace_in(self, text: str) -> tuple[str, Counter[str]]:
        """Replace the values in a text of lines; return it, and how many there are of each kind."""
        counts: Counter[str] = Counter()
        searches = [(kind, partial(_find, kind)) for kind in self.kinds if kind in _PATTERNS]
        if "phone" in self.kinds:
            regions = self.regions or (None,)
            searches += [("phone", partial(_find_phones, region)) for region in regions]
        for kind, search in searches:
            parts: list[str] = []
            done = 0
            for start, stop in search(text):
                parts += text[done:start], WORDS[kind]
                done = stop
            counts[kind] += len(parts) // 2
            text = "".join([*parts, text[done:]])
        return text, Counter({kind: count for kind, count in counts.items() if count})


# Classes of characters for the search for suspects. Numba takes plain constants.
_BREAK = 0  # ends numbers
_BLANK = 1  # may stand between digits
_STOP = 2
_DIGIT = 3
_CAPITAL = 4
_AT = 5
_COLON = 6


@functools.cache
def _suspect_table() -> np.ndarray:
    """Return the class of each code point for the search, uint8 [NUM_CODE_POINTS]."""

    def kind_of(character: str, category: str) -> int:
        if category == "Nd":
            return _DIGIT
        return _BLANK if re.match(_BETWEEN, character) else _BREAK

    table = code_point_table(kind_of, _BREAK)
    table[ord("A") : ord("Z") + 1] = _CAPITAL
    table[ord(".")] = _STOP
    table[ord("@")] = _AT
    table[ord(":")] = _COLON
    return table


def find_suspects(data: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
    """Return which lines may have a value, bool [lines]; all others have none.

    Args:
        data: uint8, UTF-8.
        starts, stops: int64 [lines], bytes of each.
    """
    return _find_suspects(data, starts, stops, _suspect_table())


@numba.njit(cache=True, nogil=True)
def _find_suspects(data, starts, stops, table):
    """Find 7 digits with blanks between, a digit after three stops, `DE89`, `@x`, or `2001:`."""
    is_suspect = np.zeros(len(starts), np.bool_)
    for line in range(len(starts)):
        position, stop = starts[line], stops[line]
        digits = dots = capitals = 0
        is_found = False
        while position < stop and not is_found:
            code_point, width = decode(data, position)
            kind = table[code_point]
            if kind == _DIGIT:  # of phone numbers and cards; of 1.2.3.4; of DE89
                digits += 1
                is_found = digits == 7 or dots == 3 or (digits == 2 and capitals == 2)
            elif kind == _STOP:
                if digits > 0:
                    dots += 1
            else:
                dots = 0
                if kind != _BLANK:
                    digits = 0
                capitals = capitals + 1 if kind == _CAPITAL else 0
                if kind == _AT:
                    is_found = position + 1 < stop and data[position + 1] != 0x20
                elif kind == _COLON and position >= starts[line] + 4:  # of 2001:db8::1
                    is_found = 0x32 <= data[position - 4] <= 0x33 and data[position - 3] != 0x3A
            position += width
        is_suspect[line] = is_found
    return is_suspect
