"""The line that `vocab` and `preprocess` begin with: how they understand their corpus."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bert_tf.base.wording import quantity
from bert_tf.config.sections.data import CorpusSection
from pipeline.beam.files import FileInfo
from pipeline.corpus.first_look import TextLook, look_at_text
from pipeline.corpus.readers.formats import format_of
from pipeline.report.corpus.language import language_of
from pipeline.report.corpus.sample import read_sample
from pipeline.report.corpus.text_amount import text_scale

_LANGUAGE_BYTES = 1_000_000
_TABLE_BYTES = 1_000_000
_FORMATS = {
    "jsonl": "JSON lines: a document per row",
    "csv": "CSV: a document per row",
    "tsv": "TSV: a document per row",
    "parquet": "Parquet: a document per row",
    "mediawiki": "MediaWiki dump: a document per article",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class UnderstoodCorpus:
    """How a corpus will be read, which follows from its files and the config.

    Attributes:
        line: for the user.
        layouts: of its files of plain text, by path.
        facts: for the manifest.
    """

    line: str
    layouts: Mapping[str, str]
    facts: dict[str, Any]


def understand_corpus(config: CorpusSection, files: Sequence[FileInfo]) -> UnderstoodCorpus:
    """Looks at a sample of a corpus.

    Raises:
        UsageError, InputError: as the readers.
    """
    formats = Counter(format_of(file.path, config) for file in files)
    look = look_at_text(config, files)
    texts = [head[: _LANGUAGE_BYTES // len(look.heads)] for head in look.heads]
    language_sample = b"\n".join(texts).decode("utf-8", "ignore")
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
                language_sample += "\n".join(block.sentences.to_pylist())
    language = language_of(language_sample)
    number = None if dumps else round(documents)
    shown = None
    if number is not None:
        rounded = f"about {_rounded(number):,} documents"
        shown = quantity(number, "document") if is_exact else rounded
    kinds = "; ".join(_kinds(formats, look))
    line = ", ".join(filter(None, [f"{quantity(len(files), 'file')}, {kinds}", language, shown]))
    facts = {
        "line": line,
        "layouts": dict(Counter(look.layouts.values()).most_common()),
        "language": language,
        "documents_about": number,
    }
    return UnderstoodCorpus(line=line, layouts=look.layouts, facts=facts)


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


def _rounded(number: int) -> int:
    """With two digits that count."""
    return round(number, min(2 - len(str(number)), 0))
