"""The golden set of layouts: made text files whose documents and sentences are known.

Each case is a small corpus: sentences of a language (`tests/golden/layouts/languages.toml`), laid
out in one of the ways in which people store text. The layout is applied to known documents, so the
right answer needs no judgment. `oddities.jsonl` beside it holds files of other kinds, with the
answer written by hand.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import random
import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "tests" / "golden" / "layouts"
# Scripts whose lines break between any characters but before these.
_CLOSING = frozenset("。，！？、」”")
_UNSPACED = ("Chinese", "Japanese")
_COMMAS = ",，、،"
_SLOT = re.compile(r"(?<![A-Za-z])[NPW](?![A-Za-z])")  # of a sentence, see `languages.toml`
_BROKEN_AT_NAME = 0.4  # of the clauses with a name or number inside

Paragraph = list[str]
Document = list[Paragraph]


@dataclasses.dataclass(frozen=True)
class Case:
    """A small corpus and how it is to be read.

    Attributes:
        layout: name of the way in which it is laid out.
        language: of its text.
        files: text by name.
        accepted: values of `CorpusSection.text_layout` that read it well.
        documents: their sentences, in the order of the files.
        has_sentences: whether these are known; verse has lines.
    """

    layout: str
    language: str
    files: dict[str, str]
    accepted: tuple[str, ...]
    documents: list[list[str]]
    has_sentences: bool = True

    @property
    def name(self) -> str:
        """Return `layout/language`, or the name of an oddity."""
        return f"{self.layout}/{self.language}"


def _columns(text: str) -> int:
    return sum(1 + (unicodedata.east_asian_width(character) in "FW") for character in text)


class Writer:
    """Writes documents in a language, which depend on the seed only."""

    def __init__(self, language: str, seed: str):
        with (FOLDER / "languages.toml").open("rb") as file:
            entry = tomllib.load(file)[language]
        self.language = language
        self.marks: str = entry["marks"]
        self._names, self._places = entry["names"].split(), entry["places"].split()
        self._templates = entry["sentences"].strip().splitlines()
        self.random = random.Random(f"{language} {seed}")

    def sentence(self) -> str:
        """Return a sentence; in Thai, `|` shows where a line may be broken."""
        text = self.random.choice(self._templates)
        number = str(self.random.randint(2, 1999))
        slots = {"N": number, "P": self.random.choice(self._places)}
        slots["W"] = self.random.choice(self._names)
        return self.begun(_SLOT.sub(lambda slot: slots[slot[0]], text))

    def begun(self, text: str) -> str:
        """Return a text as the beginning of a sentence; texts in Georgian have no capitals."""
        return text if self.language == "Georgian" else text[:1].upper() + text[1:]

    def paragraph(self, fewest: int = 3, most: int = 6) -> Paragraph:
        """Return some sentences."""
        return [self.sentence() for _ in range(self.random.randint(fewest, most))]

    def document(self, fewest: int = 3, most: int = 6) -> Document:
        """Return some paragraphs."""
        return [self.paragraph() for _ in range(self.random.randint(fewest, most))]

    def title(self) -> str:
        """Return a few words without a mark."""
        place = self.begun(self.random.choice(self._places))
        return f"{place} {self.random.randint(2, 1999)}"

    def joined(self, paragraph: Paragraph) -> str:
        """Return the text of a paragraph, with Thai's `|`."""
        return ("" if self.language in _UNSPACED else " ").join(paragraph)

    def plain(self, paragraph: Paragraph) -> str:
        """Return the text of a paragraph in a single line."""
        return self.joined(paragraph).replace("|", "")

    def wrapped(self, paragraph: Paragraph, columns: int, indent: str = "") -> list[str]:
        """Break a paragraph at a margin."""
        text = self.joined(paragraph)
        if self.language == "Thai":
            pieces = text.replace(" ", "| |").split("|")
        elif self.language in _UNSPACED:
            pieces = list(text)
        else:
            pieces = re.split("( )", text)
        lines = [indent]
        for place, piece in enumerate(pieces):
            marks = "".join(itertools.takewhile(_CLOSING.__contains__, pieces[place + 1 :]))
            if _columns(lines[-1] + piece + marks) > columns and piece not in _CLOSING:
                lines.append("")
            lines[-1] += piece
        lines = [line.rstrip(" ") for line in lines]
        return [lines[0], *(line.lstrip(" ") for line in lines[1:] if line.strip(" "))]

    def justified(self, paragraph: Paragraph, columns: int) -> list[str]:
        """Wrap a paragraph, and spread blanks until all lines but the last reach the margin."""
        lines = self.wrapped(paragraph, columns)
        for number, line in enumerate(lines[:-1]):
            words = line.split(" ")
            gaps = [" "] * (len(words) - 1)
            for _ in range(columns - _columns(line) if gaps else 0):
                gaps[self.random.randrange(len(gaps))] += " "
            lines[number] = "".join(itertools.chain(*zip(words, [*gaps, ""], strict=True)))
        return lines

    def clauses(self, paragraph: Paragraph) -> list[str]:
        """Break a paragraph after each comma and sentence, as Markdown's semantic line breaks."""
        lines = []
        for sentence in paragraph:
            begin = 0
            for place, character in enumerate(sentence):
                if character in _COMMAS:
                    lines.append(sentence[begin : place + 1].strip())
                    begin = place + 1
            if sentence[begin:].strip():
                lines.append(sentence[begin:].strip())
        return lines

    def phrases(self, paragraph: Paragraph) -> list[str]:
        """Break as `clauses`, and before some names and numbers, as people do by sense."""
        lines = []
        for clause in self.clauses(paragraph):
            places = [
                place
                for place, (blank, begin) in enumerate(itertools.pairwise(clause))
                if blank == " " and (begin.isupper() or begin.isdigit())
            ]
            if places and self.random.random() < _BROKEN_AT_NAME:
                place = self.random.choice(places)
                lines += [clause[:place].strip(), clause[place:].strip()]
            else:
                lines.append(clause)
        return lines

    def verse(self, lines: int) -> list[str]:
        """Return a stanza: sentences in lines of about one length, each beginning as one."""
        text = self.joined([self.sentence() for _ in range(3)])
        is_unspaced = self.language in (*_UNSPACED, "Thai")
        pieces = list(text.replace("|", "")) if is_unspaced else text.split()
        bounds = [len(pieces) * line // lines for line in range(lines + 1)]
        between = "" if is_unspaced else " "
        return [
            self.begun(between.join(pieces[begin:end])) for begin, end in itertools.pairwise(bounds)
        ]

    def sentences(self, document: Document) -> list[str]:
        """Return the right sentences; Thai has no marks, so its paragraphs stay whole."""
        if self.marks:
            return [sentence for paragraph in document for sentence in paragraph]
        return [self.plain(paragraph) for paragraph in document]


Made = tuple[dict[str, str], tuple[str, ...], list[list[str]]]


def _one(text: str) -> dict[str, str]:
    return {"all.txt": text + "\n"}


def _each(texts: Sequence[str]) -> dict[str, str]:
    return {f"{number:02}.txt": text + "\n" for number, text in enumerate(texts)}


def _sentence_lines(new: Writer) -> Made:
    documents = [new.paragraph(5, 12) for _ in range(30)]
    blocks = ["\n".join(new.plain([each]) for each in document) for document in documents]
    wanted = [[new.plain([each]) for each in document] for document in documents]
    return _one("\n\n".join(blocks)), ("sentences",), wanted


def _bare_sentence_lines(new: Writer) -> Made:
    """Without marks, as cleaned for word vectors: of one length or of any."""
    marks = f"{new.marks}{_COMMAS}“”„«»「」|"
    table = str.maketrans(dict.fromkeys(marks, ""))
    shortest = [line for line in (new.sentence() for _ in range(900)) if len(line) < 60]
    documents = []
    for _ in range(30):
        count = new.random.randint(5, 12)
        documents.append([shortest.pop().translate(table).strip() for _ in range(count)])
    return _one("\n\n".join("\n".join(each) for each in documents)), ("sentences",), documents


def _paragraph_lines(new: Writer, single: float) -> Made:
    documents = []
    for _ in range(60):
        count = 1 if new.random.random() < single else new.random.randint(2, 6)
        documents.append([new.paragraph(2, 5) for _ in range(count)])
    texts = ["\n".join(map(new.plain, each)) for each in documents]
    files = _each(["\n\n".join(texts[:30]), "\n\n".join(texts[30:])])
    return files, ("paragraph_lines",), [new.sentences(each) for each in documents]


def _cc100(new: Writer) -> Made:
    """As CC-100 and OSCAR: four documents of ten are one paragraph."""
    return _paragraph_lines(new, 0.4)


def _news(new: Writer) -> Made:
    return _paragraph_lines(new, 0.0)


def _document_lines(new: Writer) -> Made:
    documents = [[new.paragraph(4, 8)] for _ in range(60)]
    text = "\n".join(new.plain(each[0]) for each in documents)
    return _one(text), ("lines",), [new.sentences(each) for each in documents]


def _articles_with_gaps(new: Writer) -> Made:
    documents = [new.document() for _ in range(12)]
    files = _each(["\n\n".join(map(new.plain, each)) for each in documents])
    return files, ("file", "paragraphs"), [new.sentences(each) for each in documents]


def _titled_articles(new: Writer) -> Made:
    documents = [new.document() for _ in range(12)]
    titles = [new.title() for _ in documents]
    texts = ["\n".join(map(new.plain, each)) for each in documents]
    files = _each([f"{title}\n\n{text}" for title, text in zip(titles, texts, strict=True)])
    wanted = [[title, *new.sentences(each)] for title, each in zip(titles, documents, strict=True)]
    return files, ("file",), wanted


def _articles_of_lines(new: Writer) -> Made:
    documents = [new.document() for _ in range(12)]
    files = _each(["\n".join(map(new.plain, each)) for each in documents])
    return files, ("file",), [new.sentences(each) for each in documents]


def _files_of_sentences(new: Writer) -> Made:
    documents = [new.paragraph(10, 20) for _ in range(12)]
    lines = [[new.plain([each]) for each in document] for document in documents]
    return _each(["\n".join(each) for each in lines]), ("file",), lines


def _book(new: Writer, columns: int) -> Made:
    chapters, wanted = [], []
    for _ in range(6):
        title, chapter = new.title(), new.document(8, 12)
        blocks = ["\n".join(new.wrapped(each, columns)) for each in chapter]
        chapters.append(f"{title}\n\n\n" + "\n\n".join(blocks))
        wanted += [title, *new.sentences(chapter)]
    return _one("\n\n\n\n".join(chapters)), ("paragraphs", "file"), [wanted]


def _wide_book(new: Writer) -> Made:
    return _book(new, 72)


def _narrow_book(new: Writer) -> Made:
    return _book(new, 44)


def _justified_book(new: Writer) -> Made:
    """As `nroff` and word processors write text files, with blanks of any width."""
    document = new.document(40, 40)
    text = "\n\n".join("\n".join(new.justified(each, 60)) for each in document)
    return _one(text), ("paragraphs", "file"), [new.sentences(document)]


def _indented_book(new: Writer) -> Made:
    """Without blank lines: the first line of a paragraph is indented."""
    documents = [new.document(6, 9) for _ in range(5)]
    indent = "\u3000\u3000" if new.language in _UNSPACED else "    "
    texts = [
        "\n".join(line for part in each for line in new.wrapped(part, 66, indent))
        for each in documents
    ]
    return _each(texts), ("file",), [new.sentences(each) for each in documents]


def _articles(new: Writer) -> Made:
    documents = [new.document(3, 5) for _ in range(14)]
    texts = ["\n\n".join(map(new.plain, each)) for each in documents]
    return _one("\n\n\n".join(texts)), ("articles",), [new.sentences(each) for each in documents]


def _end_of_text(new: Writer) -> Made:
    documents = [new.document() for _ in range(12)]
    texts = ["\n\n".join(map(new.plain, each)) for each in documents]
    wanted = [new.sentences(each) for each in documents]
    return _one("\n<|endoftext|>\n".join(texts)), ("endoftext",), wanted


def _wiki(new: Writer) -> Made:
    documents = [new.document() for _ in range(12)]
    parts = []
    for number, document in enumerate(documents):
        title, text = new.title(), "\n".join(map(new.plain, document))
        head = f'<doc id="{number}" url="u" title="{title}">\n{title}\n\n'
        parts.append(f"{head}{text}\n\n</doc>")
    return _one("\n".join(parts)), ("wikiextractor",), [new.sentences(each) for each in documents]


def _semantic_breaks(new: Writer) -> Made:
    document = new.document(40, 40)
    text = "\n\n".join("\n".join(new.clauses(each)) for each in document)
    return _one(text), ("paragraphs", "file"), [new.sentences(document)]


def _breaks_at_names(new: Writer) -> Made:
    document = new.document(40, 40)
    text = "\n\n".join("\n".join(new.phrases(each)) for each in document)
    return _one(text), ("paragraphs", "file"), [new.sentences(document)]


def _double_spaced(new: Writer) -> Made:
    """As typewriters and OCR write: a blank line after each line."""
    document = new.document(40, 40)
    text = "\n\n".join(line for each in document for line in new.wrapped(each, 72))
    return _one(text), ("paragraphs", "file"), [new.sentences(document)]


def _stanzas(new: Writer) -> Made:
    """Accept one document; where its lines end sentences is not asked."""
    stanzas = [new.verse(4) for _ in range(40)]
    lines = [line for stanza in stanzas for line in stanza]
    return _one("\n\n".join(map("\n".join, stanzas))), ("paragraphs", "file"), [lines]


def _dialogs(new: Writer) -> Made:
    dialogs = [new.paragraph(4, 9) for _ in range(30)]
    lines = [[f"- {new.plain([each])}" for each in dialog] for dialog in dialogs]
    return _one("\n\n".join(map("\n".join, lines))), ("sentences",), lines


def _markdown(new: Writer) -> Made:
    files, wanted = [], []
    for _ in range(8):
        blocks, sentences = [f"# {new.title()}"], []
        sentences.append(blocks[0])
        for _ in range(3):
            paragraph, heading = new.paragraph(), f"## {new.title()}"
            items = [f"- {new.title()}" for _ in range(4)]
            blocks += [heading, new.plain(paragraph), "\n".join(items)]
            sentences += [heading, *new.sentences([paragraph]), *items]
        files.append("\n\n".join(blocks))
        wanted.append(sentences)
    return _each(files), ("file", "paragraphs"), wanted


def _manual(new: Writer) -> Made:
    """Accept reStructuredText's headings with underlines, which are no part of sentences."""
    files, wanted = [], []
    for _ in range(6):
        blocks: list[str] = []
        sentences: list[str] = []
        for level in "=---":
            title = new.title()
            blocks.append(f"{title}\n{level * (2 * len(title))}")
            sentences.append(title)
            for _ in range(2):
                paragraph, item = new.paragraph(), new.paragraph(1, 1)
                blocks.append("\n".join(new.wrapped(paragraph, 72)))
                blocks.append("\n  ".join(new.wrapped([f"* {new.joined(item)}"], 70)))
                sentences += [*new.sentences([paragraph]), f"* {new.plain(item)}"]
        files.append("\n\n".join(blocks))
        wanted.append(sentences)
    return _each(files), ("paragraphs", "file"), wanted


def _log(new: Writer) -> Made:
    lines = [f"2031-03-{day % 28 + 1:02} {day % 24:02}:00 {new.title()}" for day in range(300)]
    return _one("\n".join(lines)), ("file",), [lines]


def _cards(new: Writer) -> Made:
    """Short lines of forms, a block each."""
    cards = [[f"{new.title()}: {new.title()}" for _ in range(6)] for _ in range(60)]
    return _one("\n\n".join(map("\n".join, cards))), ("sentences", "paragraph_lines"), cards


LAYOUTS: dict[str, Callable[[Writer], Made]] = {
    "sentence lines": _sentence_lines,
    "bare sentence lines": _bare_sentence_lines,
    "paragraph lines": _news,
    "paragraph lines, CC-100": _cc100,
    "document lines": _document_lines,
    "articles, gaps": _articles_with_gaps,
    "articles, titled": _titled_articles,
    "articles, lines": _articles_of_lines,
    "articles, sentence lines": _files_of_sentences,
    "articles in one file": _articles,
    "wrapped at 72": _wide_book,
    "wrapped at 44": _narrow_book,
    "wrapped, justified": _justified_book,
    "wrapped, indented": _indented_book,
    "<|endoftext|>": _end_of_text,
    "WikiExtractor": _wiki,
    "semantic breaks": _semantic_breaks,
    "semantic breaks, names": _breaks_at_names,
    "double-spaced": _double_spaced,
    "stanzas": _stanzas,
    "dialogs": _dialogs,
    "Markdown": _markdown,
    "reStructuredText": _manual,
    "log": _log,
    "cards": _cards,
}
# Without commas and marks nothing tells where their lines or sentences end.
_UNKNOWABLE = {
    ("semantic breaks", "Thai"),
    ("semantic breaks, names", "Thai"),
    ("double-spaced", "Thai"),
    ("dialogs", "Thai"),
    ("stanzas", "Thai"),
}


# Paragraphs that no mark splits are read as sentences, with the same result.
_EQUAL = {"paragraph lines": ("Thai",), "paragraph lines, CC-100": ("Thai",)}


def languages() -> list[str]:
    """Return the languages of the set."""
    with (FOLDER / "languages.toml").open("rb") as file:
        return list(tomllib.load(file))


def golden_cases(only: str = "") -> Iterator[Case]:
    """Yield the cases of all layouts, or of one, in all languages, then the oddities."""
    for layout, make in LAYOUTS.items():
        for language in languages() if only in ("", layout) else ():
            if (layout, language) not in _UNKNOWABLE:
                files, accepted, documents = make(Writer(language, layout))
                if language in _EQUAL.get(layout, ()):
                    accepted = (*accepted, "sentences")
                yield Case(layout, language, files, accepted, documents, layout != "stanzas")
    text = (FOLDER / "oddities.jsonl").read_text(encoding="utf-8")
    for line in text.splitlines() if only in ("", "oddities") else ():
        row = json.loads(line)
        yield Case(
            layout="oddities",
            language=row["name"],
            files=row["files"],
            accepted=tuple(row["layouts"]),
            documents=row["documents"],
            has_sentences=row.get("has_sentences", True),
        )
