"""Describe how a corpus will be read, and guess its language from scripts and frequent words.

The guess of the language is only shown to the user; nothing is decided by it. Some scripts have one
language. Within other scripts, the guess is the language whose most frequent words make up the
largest share of the text, if it is well ahead of the next one (Grefenstette 1995, "Comparing two
language identification schemes": short words).
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bert_tf.base.wording import quantity
from bert_tf.config.sections.data import CorpusSection
from pipeline.beam.files import FileInfo
from pipeline.corpus.abbreviations import WORDS_OF_LANGUAGES
from pipeline.corpus.document_block import DocumentBlock
from pipeline.corpus.documents import DocumentRules, make_block
from pipeline.corpus.layout.detection import TextLook
from pipeline.corpus.layout.sketch import has_other_line_ends
from pipeline.corpus.readers.formats import format_of, look_at_text
from pipeline.corpus.readers.splits import BYTE_ORDER_MARK, Chunk
from pipeline.corpus.readers.text import TextReader
from pipeline.report.corpus.judged import first_sentences, judge_corpus, read_values
from pipeline.report.corpus.other_formats import signs_of_other_formats
from pipeline.report.corpus.sample import read_sample, text_scale
from pipeline.report.corpus.scripts import count_scripts

_LANGUAGE_BYTES = 1_000_000  # of text files, by which the language is guessed
_TABLE_BYTES = 1_000_000  # of other formats, which are read for that
_FORMATS = {
    "jsonl": "JSON lines: a document per row",
    "csv": "CSV: a document per row",
    "tsv": "TSV: a document per row",
    "parquet": "Parquet: a document per row",
    "mediawiki": "MediaWiki dump: a document per article",
    "html": "HTML: a document per file",
    "warc": "WARC: a document per page",
}
_SCRIPTS_OF_ONE_LANGUAGE = (
    *("Armenian", "Georgian", "Greek", "Gujarati", "Kannada", "Khmer", "Lao", "Malayalam"),
    *("Sinhala", "Tamil", "Telugu", "Thai", "Tibetan"),
)
_LANGUAGE_OF_SCRIPT = {
    **{name: name for name in _SCRIPTS_OF_ONE_LANGUAGE},
    "Gurmukhi": "Punjabi",
    "Han": "Chinese",
    "Hangul": "Korean",
    "Hiragana": "Japanese",
    "Katakana": "Japanese",
    "Myanmar": "Burmese",
}
_MOST_OF = 0.8  # of the letters, at least, are in the script of the text
_KANA_FRACTION = 0.05  # of the letters, at least, in Japanese text
# Frequent words of the guessed language: their share of the words, at least, also as a multiple of
# the share of the next language; words of the text, and different frequent ones, at least.
_LEAST_HITS = 0.15
_TIMES_THE_NEXT = 1.5
_FEWEST_WORDS = 20
_FEWEST_DISTINCT = 5
_OWN_LETTER = {"Russian": "ы"}  # which Bulgarian, Macedonian and Serbian lack
_WORD = re.compile(r"[^\W\d_]+")


@dataclasses.dataclass(frozen=True, kw_only=True)
class UnderstoodCorpus:
    """The files, formats, layouts and language of a corpus, with warnings.

    Attributes:
        line: for the user: files, formats and layouts, language, documents.
        reading: the part of `line` on formats, layouts and language.
        first: a line with the first sentences, or none.
        signs: warnings about text that is not prose.
        findings: by detector, warnings about the documents and sentences of the text.
        layouts: of plain text files, by path.
        facts: for the manifest.
    """

    line: str
    reading: str
    first: Sequence[str]
    signs: list[str]
    findings: Mapping[str, str]
    layouts: Mapping[str, str]
    facts: dict[str, Any]

    @property
    def warnings(self) -> list[str]:
        """Return all warnings."""
        return [*self.signs, *self.findings.values()]


def understand_corpus(config: CorpusSection, files: Sequence[FileInfo]) -> UnderstoodCorpus:
    """Sample a corpus, and describe how it will be read.

    Args:
        config: of `vocab` or `preprocess`.
        files: that match its input.

    Returns:
        The description, the layouts and the warnings.

    Raises:
        UsageError: a file does not fit the config.
        InputError: a file is damaged.
    """
    formats = Counter(format_of(file.path, config) for file in files)
    text_look = look_at_text(config, files)
    head_bytes = _LANGUAGE_BYTES // max(len(text_look.heads), 1)
    heads = {path: head[:head_bytes] for path, head in text_look.heads.items()}
    cells: dict[str, bytes] = {}
    language_sample = b"\n".join(heads.values()).decode("utf-8", "ignore")
    documents = text_look.documents()
    is_exact = text_look.is_whole
    has_dumps = formats["mediawiki"] > 0  # whose markup takes seconds to parse
    tables = [file for file in files if file.path not in text_look.layouts]
    blocks: Sequence[DocumentBlock] = ()
    if tables and not has_dumps:
        sample = read_sample(config, tables, most_bytes=_TABLE_BYTES)
        seen = sum(block.num_documents for block in sample.blocks)
        documents += seen if sample.is_whole else seen * text_scale(config, sample, tables)
        is_exact &= sample.is_whole
        blocks = sample.blocks
        for block in blocks:
            if len(language_sample) < 2 * _LANGUAGE_BYTES:
                text = "\n".join(block.sentences.to_pylist())
                language_sample += text
                cells[block.source] = cells.get(block.source, b"") + text.encode() + b"\n"
    language = language_of(language_sample)
    number = None if has_dumps else round(documents)
    kinds = "; ".join(_kinds(formats, text_look))
    reading = ", ".join(filter(None, [kinds, language]))
    parts = [quantity(len(files), "file"), reading]
    if number is not None:
        parts.append(_shown_documents(number, is_exact=is_exact))
    line = ", ".join(filter(None, parts))
    layouts = text_look.layouts
    facts = {
        "line": line,
        "layouts": dict(Counter(layouts.values()).most_common()),
        "language": language,
        "documents_about": number,
    }
    blocks = [*_blocks_of_heads(config, heads, layouts), *blocks]
    read = list(read_values(config, blocks, text_look))
    plain = {path: head for path, head in heads.items() if layouts[path] != "wikiextractor"}
    return UnderstoodCorpus(
        line=line,
        reading=reading,
        first=first_sentences(read),
        signs=signs_of_other_formats(plain, cells, config),
        findings=judge_corpus(read),
        layouts=layouts,
        facts=facts,
    )


def _shown_documents(number: int, *, is_exact: bool) -> str:
    """Return a number of documents in words; an estimate is rounded to two digits."""
    if is_exact:
        return quantity(number, "document")
    more_digits = max(len(str(number)) - 2, 0)
    return f"about {round(number, -more_digits):,} documents"


def _blocks_of_heads(
    config: CorpusSection, heads: Mapping[str, bytes], layouts: Mapping[str, str]
) -> Iterator[DocumentBlock]:
    """Yield the documents in the beginnings of text files, which may be one large document each."""
    rules = dataclasses.replace(DocumentRules.from_config(config), limits={}, curation=())
    for path, head in heads.items():
        reader = TextReader(layout=layouts[path], has_other_line_ends=has_other_line_ends(head))
        # The last line may be cut, unless it is the only one.
        lines = head[: head.rfind(b"\n") + 1] or head
        data = lines.removeprefix(BYTE_ORDER_MARK)
        yield make_block(reader.read(path, Chunk(0, 0, 1, data)), rules)


def _kinds(formats: Counter[str], text_look: TextLook) -> Iterator[str]:
    """Yield each format or layout of the files, with the number of its files among several."""
    for name, number in formats.most_common():
        if name != "text":
            several = f" ({quantity(number, 'file')})" if len(formats) > 1 else ""
            yield _FORMATS[name] + several
            continue
        descriptions = text_look.descriptions()
        is_mixed = len(descriptions) + len(formats) > 2
        parts = []
        for description, files in descriptions.most_common():
            several = f" ({quantity(files, 'file')})" if is_mixed else ""
            parts.append(description + several)
        yield f"text: {', '.join(parts)}"


def language_of(text: str) -> str | None:
    """Guess the language from frequent words, else the script.

    Returns:
        A language, "several scripts", or a script such as "Latin script"; None without letters.
    """
    scripts = count_scripts([text])
    if not scripts:
        return None
    total = sum(scripts.values())
    # Japanese mixes three scripts, none of which needs to be most of the text.
    kana = scripts.get("Hiragana", 0) + scripts.get("Katakana", 0)
    if kana >= _KANA_FRACTION * total and kana + scripts.get("Han", 0) >= _MOST_OF * total:
        return "Japanese"
    script, letters = next(iter(scripts.items()))
    if letters < _MOST_OF * total:
        return "several scripts"
    if script in _LANGUAGE_OF_SCRIPT:
        return _LANGUAGE_OF_SCRIPT[script]
    words = Counter(_WORD.findall(text.lower()))
    number = words.total()
    hits = sorted(
        (sum(words[word] for word in known) / max(number, 1), language)
        for language, known in WORDS_OF_LANGUAGES.items()
    )
    share, language = hits[-1]
    next_share, _ = hits[-2]
    is_clear = (
        number >= _FEWEST_WORDS
        and share >= max(_LEAST_HITS, _TIMES_THE_NEXT * next_share)
        and len(words.keys() & set(WORDS_OF_LANGUAGES[language])) >= _FEWEST_DISTINCT
        and _OWN_LETTER.get(language, "") in text
    )
    return language if is_clear else f"{script} script"
