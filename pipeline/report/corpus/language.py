"""How a corpus will be read, and guesses of the language from scripts and frequent words."""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bert_tf.base.wording import quantity
from bert_tf.config.sections.data import CorpusSection
from pipeline.beam.files import FileInfo
from pipeline.corpus.characters import NUM_CODE_POINTS
from pipeline.corpus.readers.formats import TextLook, format_of, look_at_text
from pipeline.corpus.sentences import WORDS_OF_LANGUAGES
from pipeline.report.corpus.other_formats import signs_of_other_formats
from pipeline.report.corpus.sample import read_sample, text_scale

_LANGUAGE_BYTES = 1_000_000
_TABLE_BYTES = 1_000_000
_FORMATS = {
    "jsonl": "JSON lines: a document per row",
    "csv": "CSV: a document per row",
    "tsv": "TSV: a document per row",
    "parquet": "Parquet: a document per row",
    "mediawiki": "MediaWiki dump: a document per article",
    "html": "HTML: a document per file",
    "warc": "WARC: a document per page",
}
OTHER = "other"
_SCRIPT = re.compile(
    r"(?:FULLWIDTH |HALFWIDTH )?(?!MODIFIER|SUPERSCRIPT|TURNED)(.+?)"
    r" (?:(?:(?:UNIFIED|COMPATIBILITY) )?IDEOGRAPH|LETTER|CAPITAL|SMALL|SUBSCRIPT|SYLLABLE|"
    r"SYLLABICS|CHARACTER|LIGATURE|(?:INDEPENDENT )?VOWEL|"
    r"EPIGRAPHIC|MTAVRULI|MODIFIER)\b"
)
_OTHER_NAMES = {
    "BOPOMOFO FINAL": "Bopomofo",
    "CJK": "Han",
    "HENTAIGANA": "Hiragana",
    "KATAKANA-HIRAGANA": "Katakana",
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
_MOST_OF = 0.8
_KANA_FRACTION = 0.05
_LEAST_HITS = 0.15  # of words
_TIMES_THE_NEXT = 1.5
_FEWEST_WORDS, _FEWEST_DISTINCT = 20, 5
_OWN_LETTER = {"Russian": "ы"}  # which Bulgarian, Macedonian and Serbian lack
_WORD = re.compile(r"[^\W\d_]+")


@dataclasses.dataclass(frozen=True, kw_only=True)
class UnderstoodCorpus:
    """How a corpus will be read: a line for the user, layouts by path, facts for the manifest."""

    line: str
    warnings: list[str]  # about text that is not prose
    layouts: Mapping[str, str]
    facts: dict[str, Any]


def understand_corpus(config: CorpusSection, files: Sequence[FileInfo]) -> UnderstoodCorpus:
    """Samples a corpus; raises UsageError and InputError as the readers do."""
    formats = Counter(format_of(file.path, config) for file in files)
    look = look_at_text(config, files)
    heads = {path: head[: _LANGUAGE_BYTES // len(look.heads)] for path, head in look.heads.items()}
    cells: dict[str, bytes] = {}
    language_sample = b"\n".join(heads.values()).decode("utf-8", "ignore")
    documents, is_exact = look.documents(), look.is_whole
    dumps = formats["mediawiki"]  # whose mark-up takes seconds to understand
    tables = [file for file in files if file.path not in look.layouts]
    if tables and not dumps:
        sample = read_sample(config, tables, most_bytes=_TABLE_BYTES)
        found = sum(block.num_documents for block in sample.blocks)
        documents += found if sample.is_whole else found * text_scale(config, sample, tables)
        is_exact &= sample.is_whole
        for block in sample.blocks:
            if len(language_sample) < 2 * _LANGUAGE_BYTES:
                text = "\n".join(block.sentences.to_pylist())
                language_sample += text
                cells[block.source] = cells.get(block.source, b"") + text.encode() + b"\n"
    language = language_of(language_sample)
    number = None if dumps else round(documents)
    shown = None
    if number is not None:
        rounded = f"about {round(number, min(2 - len(str(number)), 0)):,} documents"
        shown = quantity(number, "document") if is_exact else rounded
    kinds = "; ".join(_kinds(formats, look))
    line = ", ".join(filter(None, [f"{quantity(len(files), 'file')}, {kinds}", language, shown]))
    facts = {
        "line": line,
        "layouts": dict(Counter(look.layouts.values()).most_common()),
        "language": language,
        "documents_about": number,
    }
    plain = {path: head for path, head in heads.items() if look.layouts[path] != "wikiextractor"}
    warnings = signs_of_other_formats(plain, cells, config)
    return UnderstoodCorpus(line=line, warnings=warnings, layouts=look.layouts, facts=facts)


def _kinds(formats: Counter[str], look: TextLook) -> Iterator[str]:
    for name, number in formats.most_common():
        if name != "text":
            several = f" ({quantity(number, 'file')})" if len(formats) > 1 else ""
            yield _FORMATS[name] + several
            continue
        descriptions = look.descriptions()
        is_mixed = len(descriptions) + len(formats) > 2
        yield "text: " + ", ".join(
            text + (f" ({quantity(files, 'file')})" if is_mixed else "")
            for text, files in descriptions.most_common()
        )


def script_of(character: str) -> str:
    """The script of a letter, such as `Latin` or `Han`; `other` for the rest."""
    if not character.isalpha():
        return OTHER
    found = _SCRIPT.match(unicodedata.name(character, ""))
    if found is None:
        return OTHER
    name = found[1]
    return _OTHER_NAMES.get(name, name.title())


def count_scripts(texts: Iterable[str]) -> dict[str, int]:
    """Counts letters by script, most frequent first."""
    counts = np.zeros(NUM_CODE_POINTS, np.int64)
    for text in texts:
        points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
        counts += np.bincount(points, minlength=NUM_CODE_POINTS)
    scripts: dict[str, int] = {}
    for code_point in np.flatnonzero(counts).tolist():
        script = script_of(chr(code_point))
        if script != OTHER:
            scripts[script] = scripts.get(script, 0) + int(counts[code_point])
    return dict(sorted(scripts.items(), key=lambda each: (-each[1], each[0])))


def language_of(text: str) -> str | None:
    """Guesses the language from frequent words, else the script; None without letters."""
    scripts = count_scripts([text])
    if not scripts:
        return None
    total = sum(scripts.values())
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
    (share, language), (next_share, _) = hits[-1], hits[-2]
    is_clear = (
        number >= _FEWEST_WORDS
        and share >= max(_LEAST_HITS, _TIMES_THE_NEXT * next_share)
        and len(words.keys() & set(WORDS_OF_LANGUAGES[language])) >= _FEWEST_DISTINCT
        and _OWN_LETTER.get(language, "") in text
    )
    return language if is_clear else f"{script} script"
