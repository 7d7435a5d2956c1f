"""Renders the tokens of a page: its visible text, with the templates inside sentences.

Control characters, which XML cannot have, serve as marks in the text. Only templates without which
sentences would have holes are rendered, named as in the English Wikipedia.
"""

from __future__ import annotations

import functools
import html
import re
from collections.abc import Callable, Iterable

from mwparserfromhell.parser import tokens
from mwparserfromhell.parser.tokens import Token

from bert_tf.base.files import toml_beside

# Shows something of a template: its name as written and the values of its numbered parameters.
Show = Callable[[str, list[str]], str]

_NUMBER = re.compile(r"[-−+]?[\d.,/ ]+")
_FORMATNUM = "formatnum:"
_GROUP = re.compile(r"\d{1,3}")
_WITH_COMMAS = ("en", "simple", "ja", "ko", "th", "zh", "he")
_RANGE_WORDS = {"-": "–", "–": "–", "and": "and", "to": "to", "or": "or", "x": "x", "by": "by"}
ITEM = "\x01"  # before a list item
HOLE = "\x02"  # where something was removed inside the text
BREAK = "\n\n"
_LISTS = toml_beside(__file__, "wikitext_tags.toml")
_TAGS = {kind: frozenset(names.split()) for kind, names in _LISTS.items()}
_STRAY_TAG = re.compile(
    rf"</?(?:{'|'.join(sorted(frozenset.union(*_TAGS.values())))})\b[^<>\n]*>", re.IGNORECASE
)
_LANGUAGE_LINK = re.compile(r"[a-z]{2,3}(?:-[a-z]+)*:\S")
_FILE_NAME = re.compile(
    r"\.(?:djvu|flac|gif|jpe?g|mp[34]|og[agv]|opus|pdf|png|stl|svg|tiff?|wav|web[mp]|xcf)$",
    re.IGNORECASE,
)


def _value(place: int, *, least: int = 1) -> Show:
    """Return a renderer that shows one value if there are at least `least`."""
    return lambda name, values: values[place].strip() if len(values) >= least else ""


def _always(text: str) -> Show:
    """Return a renderer that shows a fixed text."""
    return lambda name, values: text


def _conversion(_: str, values: list[str]) -> str:
    """Render `{{convert|5|to|10|km|mi}}`: numbers, and words between them, up to the first unit."""
    parts: list[str] = []
    for value in map(str.strip, values):
        if _NUMBER.fullmatch(value):
            parts.append(value)
        elif value in _RANGE_WORDS and parts:
            parts.append(_RANGE_WORDS[value])
        else:
            return " ".join([*parts, value]).replace(" – ", "–") if parts else ""
    return ""


def _formatted(name: str, values: list[str], *, thousands: str) -> str:
    """Render `{{formatnum:1234567.8}}`; with R without separators, with NOSEP as it is."""
    number = name[len(_FORMATNUM) :].strip()
    style = values[0].strip().upper() if values else ""
    if style == "R":
        return number.replace(",", "")
    whole, _, fraction = number.partition(".")
    digits = whole.lstrip("-−")
    if style == "NOSEP" or not digits.isdecimal():
        return number if any(map(str.isdecimal, number)) else ""
    sign = whole[: len(whole) - len(digits)]
    # Groups are counted from the right, so the digits are reversed and back.
    grouped = sign + thousands.join(_GROUP.findall(digits[::-1]))[::-1]
    return f"{grouped}.{fraction}" if fraction else grouped


_SHOWN: dict[str, Show] = {
    "'": _always("'"),
    "'s": _always("'s"),
    "abbr": _value(0),
    "as of": lambda name, values: f"{name} {values[0].strip()}" if values else "",
    "convert": _conversion,
    "cvt": _conversion,
    "lang": _value(1, least=2),
    "mdash": _always("—"),
    "nbsp": _always(" "),
    "ndash": _always("–"),
    "nihongo": _value(0),
    "nobr": _value(0),
    "nowrap": _value(0),
    "quote": lambda _, values: f"{BREAK}{values[0].strip()}{BREAK}" if values else "",
    "sic": _value(0),
    "snd": _always(" – "),
    "spaced ndash": _always(" – "),
    "transl": _value(-1, least=2),
    "transliteration": _value(-1, least=2),
}


def thousands_of(language: str) -> str:
    """Return the separator of thousands in a language; "" if it is not a comma."""
    return "," if language.partition("-")[0].lower() in _WITH_COMMAS else ""


def shown_part(name: str, thousands: str) -> Show | None:
    """Return the renderer of a template by its name (of `formatnum` with its number), or None."""
    folded = name.lower()
    if folded.startswith(_FORMATNUM):
        return functools.partial(_formatted, thousands=thousands)
    if folded.startswith("lang-"):  # lang-de, lang-grc
        return _value(0)
    return _SHOWN.get(folded)


class Renderer:
    """Renders a page's tokens one by one, since building the parser's tree is slow."""

    def __init__(self, source: Iterable[Token], hidden_namespaces: frozenset[str], thousands: str):
        self._tokens = iter(source)
        self._thousands = thousands
        self._hidden_namespaces = hidden_namespaces
        self._renderers: dict[type[Token], Callable[[Token], str]] = {
            tokens.TemplateOpen: self._template,
            tokens.ArgumentOpen: self._argument,
            tokens.WikilinkOpen: self._wikilink,
            tokens.ExternalLinkOpen: self._external_link,
            tokens.HTMLEntityStart: self._entity,
            tokens.HeadingStart: self._heading,
            tokens.CommentStart: self._comment,
            tokens.TagOpenOpen: self._tag,
        }

    def text(self) -> str:
        return self._text_until()[0]

    def _text_until(self, *ends: type[Token]) -> tuple[str, type[Token] | None]:
        """Return the text before the first token of some types, and that token's type."""
        parts: list[str] = []
        for token in self._tokens:
            kind = type(token)
            if kind is tokens.Text:
                text = token["text"]
                parts.append(_STRAY_TAG.sub("", text) if "<" in text else text)
            elif kind in ends:
                return "".join(parts), kind
            elif kind in self._renderers:
                parts.append(self._renderers[kind](token))
        return "".join(parts), None

    def _skip(self, opening: type[Token], *closings: type[Token]) -> None:
        """Skip the tokens up to the one that closes an opening token that was read."""
        depth = 1
        for token in self._tokens:
            depth += (type(token) is opening) - (type(token) in closings)
            if depth == 0:
                return

    def _template(self, _: Token) -> str:
        name, end = self._text_until(tokens.TemplateParamSeparator, tokens.TemplateClose)
        name = " ".join(name.replace("_", " ").split())
        show = shown_part(name, self._thousands)
        if show is None:
            if end == tokens.TemplateParamSeparator:
                self._skip(tokens.TemplateOpen, tokens.TemplateClose)
            return HOLE
        values = []
        while end == tokens.TemplateParamSeparator:
            value, end = self._text_until(
                tokens.TemplateParamSeparator, tokens.TemplateParamEquals, tokens.TemplateClose
            )
            if end != tokens.TemplateParamEquals:
                values.append(value)
                continue
            key = value.strip()
            value, end = self._text_until(tokens.TemplateParamSeparator, tokens.TemplateClose)
            if key == str(len(values) + 1):
                values.append(value)
        return show(name, values) or HOLE

    def _argument(self, _: Token) -> str:
        self._skip(tokens.ArgumentOpen, tokens.ArgumentClose)
        return HOLE

    def _comment(self, _: Token) -> str:
        self._text_until(tokens.CommentEnd)
        return ""

    def _heading(self, _: Token) -> str:
        self._text_until(tokens.HeadingEnd)
        return BREAK

    def _wikilink(self, _: Token) -> str:
        title, end = self._text_until(tokens.WikilinkSeparator, tokens.WikilinkClose)
        title = title.strip()
        text = None
        if end == tokens.WikilinkSeparator:
            text = self._text_until(tokens.WikilinkClose)[0]
        if title.startswith(":"):
            title = title[1:]
        elif ":" in title:
            namespace = title.partition(":")[0].strip().lower().replace("_", " ")
            # A namespace may have more names than a dump tells; a file is known by its ending.
            if namespace in self._hidden_namespaces or _FILE_NAME.search(title):
                return ""
            if text is None and _LANGUAGE_LINK.match(title):
                return ""
        return title if text is None else text

    def _external_link(self, token: Token) -> str:
        text, end = self._text_until(tokens.ExternalLinkSeparator, tokens.ExternalLinkClose)
        if end == tokens.ExternalLinkSeparator:
            return self._text_until(tokens.ExternalLinkClose)[0]
        return HOLE if token["brackets"] else text

    def _entity(self, _: Token) -> str:
        marks = {tokens.HTMLEntityNumeric: "#", tokens.HTMLEntityHex: "x"}
        name = ""
        for token in self._tokens:
            if type(token) is tokens.HTMLEntityEnd:
                break
            name += marks.get(type(token)) or token["text"]
        return html.unescape(f"&{name};")

    def _tag(self, token: Token) -> str:
        is_markup = bool(token.get("wiki_markup"))
        name, end = self._text_until(
            tokens.TagAttrStart, tokens.TagCloseOpen, tokens.TagCloseSelfclose
        )
        while end == tokens.TagAttrStart:
            _, end = self._text_until(
                tokens.TagAttrStart, tokens.TagCloseOpen, tokens.TagCloseSelfclose
            )
        name = name.strip().lower()
        if end == tokens.TagCloseSelfclose:
            if is_markup and name in ("li", "dt", "dd"):
                return ITEM
            if name in _TAGS["block"]:
                return BREAK
            return HOLE if name in _TAGS["hidden"] else ""
        if name in _TAGS["hidden"]:
            self._skip(tokens.TagOpenOpen, tokens.TagCloseClose, tokens.TagCloseSelfclose)
            return BREAK if name == "table" else HOLE
        text, _ = self._text_until(tokens.TagOpenClose)
        self._text_until(tokens.TagCloseClose)
        return f"{BREAK}{text}{BREAK}" if name in _TAGS["block"] else text
