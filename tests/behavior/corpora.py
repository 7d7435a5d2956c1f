"""Small corpora of every layout, all words of which are different, so that each can be followed."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

TOKEN = re.compile(r"w\d+|[\u0e00-\u0e7f]{3}|[\u4e00-\u9fff]")
"""A word of these corpora: w12, three Thai letters, a Chinese character."""


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Files by name, and how they are to be understood.

    Attributes:
        files: their texts.
        layout: of plain text.
        documents: in all of them.
        says: part of the line about the corpus.
    """

    files: dict[str, str]
    layout: str | None
    documents: int
    says: str

    def write(self, folder: Path) -> list[str]:
        """Write the files, and return their paths."""
        for name, text in self.files.items():
            (folder / name).write_bytes(text.encode())
        return [str(folder / name) for name in sorted(self.files)]

    def words(self) -> set[str]:
        """All of them."""
        return set(TOKEN.findall("\n".join(self.files.values()).lower()))


class _Writer:
    """Sentences of words that no other sentence has."""

    def __init__(self) -> None:
        self._numbers = itertools.count()

    def words(self, count: int) -> str:
        return " ".join(f"w{next(self._numbers)}" for _ in range(count))

    def sentence(self, words: int = 18) -> str:
        return self.words(words).replace("w", "W", 1) + "."

    def paragraph(self, sentences: int = 8) -> str:
        return " ".join(self.sentence() for _ in range(sentences))

    def article(self, between: str, paragraphs: int = 3) -> str:
        return between.join(self.many(self.paragraph, paragraphs)) + "\n"

    def wrapped(self) -> str:
        return textwrap.fill(self.paragraph(), 70)

    def chapter(self, number: int) -> str:
        return f"CHAPTER {number}\n\n\n" + "\n\n".join(self.many(self.wrapped, 12))

    def many(self, make: Callable[[], str], count: int) -> list[str]:
        return [make() for _ in range(count)]


NamedCorpora = Iterator[tuple[str, Corpus]]


def corpora() -> NamedCorpora:
    """Return every layout by name."""
    new = _Writer()
    yield from _sentences_and_paragraphs(new)
    yield from _wrapped_texts(new)
    yield from _rows(new)
    yield from _wikipedia(new)
    yield from _scripts_without_spaces(new)
    yield from _marked_documents(new)


def _file_each(count: int, text: Callable[[], str]) -> dict[str, str]:
    return {f"{number:02}.txt": text() for number in range(count)}


def _one(text: str) -> dict[str, str]:
    return {"all.txt": text}


def _sentences_and_paragraphs(new: _Writer) -> NamedCorpora:
    yield "sentences", Corpus(
        _one("\n\n".join("\n".join(new.many(new.sentence, 12)) for _ in range(30)) + "\n"),
        "sentences", 30, "a sentence per line, blank lines between documents",
    )  # fmt: skip
    yield (
        "articles",
        Corpus(
            _file_each(20, lambda: new.article("\n\n")),
            "file",
            20,
            "paragraphs separated by blank lines",
        ),
    )
    yield (
        "articles of Windows",
        Corpus(
            _file_each(20, lambda: new.article("\r\n\r\n")), "file", 20, "separated by blank lines"
        ),
    )
    yield "titled articles", Corpus(
        _file_each(12, lambda: f"{new.words(3)}\n\n{new.article(chr(10) * 2)}"),
        "file", 12, "paragraphs separated by blank lines",
    )  # fmt: skip
    yield "paragraphs of a sentence", Corpus(
        _file_each(12, lambda: "\n\n".join(new.many(new.sentence, 15))),
        "file", 12, "paragraphs separated by blank lines",
    )  # fmt: skip
    yield (
        "paragraph per line",
        Corpus(_file_each(12, lambda: new.article("\n", 5)), "file", 12, "a paragraph per line"),
    )
    yield (
        "title and paragraph lines",
        Corpus(
            _file_each(12, lambda: f"{new.words(3)}\n\n{new.article(chr(10), 5)}"),
            "file",
            12,
            "blank lines",
        ),
    )
    yield "paragraph lines of documents", Corpus(
        _one("\n".join(new.article("\n", 4) for _ in range(20))),
        "paragraph_lines", 20, "a paragraph per line, blank lines between documents",
    )  # fmt: skip


def _wrapped_texts(new: _Writer) -> NamedCorpora:
    yield "book", Corpus(
        _one("\n\n\n\n".join(new.chapter(number) for number in range(1, 9))),
        "paragraphs", 1, "hard-wrapped paragraphs separated by blank lines",
    )  # fmt: skip
    yield (
        "hard-wrapped without blank lines",
        Corpus(
            _file_each(5, lambda: "\n".join(new.many(new.wrapped, 5))),
            "file",
            5,
            "hard-wrapped lines",
        ),
    )
    for name, paragraph in (("several articles", new.paragraph), ("wrapped articles", new.wrapped)):
        text = "\n\n\n".join("\n\n".join(new.many(paragraph, 4)) for _ in range(10))
        yield name, Corpus(_one(text), "articles", 10, "documents by several")

    def scene() -> str:
        return textwrap.fill(" ".join(new.sentence(7 + more) for more in range(6)), 70)

    headed = (f"CHAPTER {n}.\n\n{new.words(3)}\n\n\n" for n in range(1, 9))
    yield "book of headed chapters", Corpus(
        _one("\n\n\n\n".join(head + "\n\n".join(new.many(scene, 12)) for head in headed)),
        "paragraphs", 1, "hard-wrapped paragraphs separated by blank lines",
    )  # fmt: skip


def _rows(new: _Writer) -> NamedCorpora:
    yield (
        "document per line",
        Corpus(_one("\n".join(new.many(new.paragraph, 60))), "lines", 60, "a document per line"),
    )
    yield (
        "rows without marks",
        Corpus(
            _one("\n".join(new.words(600) for _ in range(30))), "lines", 30, "a document per line"
        ),
    )
    yield (
        "transcripts",
        Corpus(_file_each(10, lambda: new.words(1500)), "file", 10, "a document per file"),
    )
    yield "long sentences", Corpus(
        _file_each(10, lambda: " ".join(new.sentence(100) for _ in range(12))),
        "file", 10, "a document per file",
    )  # fmt: skip
    rows = (json.dumps({"text": new.words(600)}) for _ in range(30))
    yield (
        "JSON rows without marks",
        Corpus({"rows.jsonl": "\n".join(rows)}, None, 30, "JSON lines: a document per row"),
    )


def _wikipedia(new: _Writer) -> NamedCorpora:
    yield "WikiExtractor", Corpus(
        {"wiki_00": "".join(_wiki_element(new, n) for n in range(15)) + '<doc id="99" url="u" '
         'title="Nothing">\nNothing\n\n\n</doc>\n'},
        "wikiextractor", 16, "WikiExtractor's documents",
    )  # fmt: skip
    yield (
        "WikiExtractor's JSON",
        Corpus({"wiki_00": "".join(_wiki_row(new, n) for n in range(15))}, None, 15, "JSON lines"),
    )


def _scripts_without_spaces(new: _Writer) -> NamedCorpora:
    syllables = ("".join(each) for each in itertools.product("กขคงจฉชซญดตถทนบปผพฟมยรลวส", repeat=3))

    def thai() -> str:
        return " ".join("".join(itertools.islice(syllables, 9)) for _ in range(30))

    yield (
        "Thai",
        Corpus(_file_each(6, lambda: "\n".join(new.many(thai, 6))), "file", 6, "Thai, 6 documents"),
    )
    characters = map(chr, itertools.count(0x4E00))

    def chinese() -> str:
        return "".join("".join(itertools.islice(characters, 25)) + "。" for _ in range(8))

    yield (
        "Chinese",
        Corpus(
            _file_each(8, lambda: "\n\n".join(new.many(chinese, 5))),
            "file",
            8,
            "Chinese, 8 documents",
        ),
    )
    yield "Chinese at a margin", Corpus(
        _file_each(2, lambda: "\n".join(textwrap.wrap(chinese() + chinese(), 40))),
        "file", 2, "hard-wrapped lines",
    )  # fmt: skip


def _marked_documents(new: _Writer) -> NamedCorpora:
    yield "indented paragraphs", Corpus(
        _one("\n".join(f"\u3000\u3000{new.paragraph()}" for _ in range(60))),
        "file", 1, "a paragraph per line, a document per file",
    )  # fmt: skip
    for between in ("\n<|endoftext|>\n", "<|endoftext|>"):
        texts = (between.join(new.many(lambda: new.article("\n\n"), 6)) + between for _ in range(5))
        yield f"documents between {between!r}", Corpus(
            {f"{number}.txt": text for number, text in enumerate(texts)},
            "endoftext", 30, "documents separated by <|endoftext|>",
        )  # fmt: skip
    sentences = _file_each(
        5, lambda: "\n\n".join("\n".join(new.many(new.sentence, 8)) for _ in "123")
    )
    yield "articles beside sentences", Corpus(
        {f"a{name}": new.article("\n\n") for name in sentences} | sentences,
        None, 20, "documents (5 files), paragraphs separated by blank lines (5 files)",
    )  # fmt: skip


def _wiki_element(new: _Writer, number: int) -> str:
    body = "\n".join(new.many(new.paragraph, 3))
    return (
        f'<doc id="{number}" url="https://xx.example.org/wiki?curid={number}" '
        f'title="Title {number}">\nTitle {number}\n\n{body}\n\n</doc>\n'
    )


def _wiki_row(new: _Writer, number: int) -> str:
    text = f"Title {number}\n\n" + "\n".join(new.many(new.paragraph, 3))
    url = f"https://xx.example.org/wiki?curid={number}"
    row = {"id": str(number), "revid": "1", "url": url, "title": f"Title {number}", "text": text}
    return json.dumps(row) + "\n"
