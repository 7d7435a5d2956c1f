"""Corpora judged by the sentences and documents that were made of a sample.

A wrong guess of the layout shows in the result: sentences of hundreds of words, headers as
sentences, one document out of many. See `judged.py` of `bert_tf/data/tables` for the detectors of
tables, and `other_formats.py` for patterns of raw lines.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from bert_tf.base.wording import quantity
from bert_tf.config.sections.data import CorpusSection
from bert_tf.data.tables.judged import Details, Detector, Severity, judge, shown_value
from bert_tf.data.tables.value_forms import is_blob
from pipeline.corpus.document_block import DocumentBlock
from pipeline.corpus.layout.detection import TextLook
from pipeline.corpus.layout.sketch import Sketch
from pipeline.report.corpus.scripts import OTHER, main_script

_LONGEST_SENTENCE = 150  # words
# Share of the words, and number of such sentences; fewer count if they are most of the corpus.
_IN_LONG_SENTENCES = 0.15
_FEWEST_LONG = 3
_IN_FEW_LONG_SENTENCES = 0.5
# `Name: Ambrose Age: 12`, as headers of mail, front matter and forms have keys.
_KEY = re.compile(r"(?:^|(?<=\s))[A-Z][\w-]{1,24}:(?=\s)")
# `From: Ambrose`, a header by itself: a key and a value that is no sentence.
_HEADER = re.compile(r"[A-Z][\w-]{1,24}: .*[^.!?:,;\u2026\"\u201d\u3002]$")
_KEYS_OF_SENTENCE = 3
# Share and number of the sentences.
_SENTENCES_OF_KEYS = 0.02
_FEWEST_WITH_KEYS = 2
_MOST_HEADERS = 0.7  # of the sentences; more are a list that the user wants
# Characters of a paragraph that surely has several sentences; other scripts need fewer.
_LONG_LINE = 300
_LONG_LINE_OF_OTHERS = 120
# A mark that ends sentences between two words; a line with two of them has several sentences.
_INNER_MARK = re.compile(r"\w[.!?\u06d4\u061f\u0964\u17d4\u104b\u1362]\s+\w")
_INNER_MARKS = 2
_WITH_CAPITALS = frozenset(("Latin", "Cyrillic", "Greek", "Armenian"))
_FEWEST_LONG_LINES = 3
_OF_SCRIPT = 0.05  # of the sample's characters; other scripts are quotes
_FEWEST_BLOCKS = 100  # in a file that is read as one document
_FEWEST_SINGLE_BLOCKS = 200  # in each of several such files, if blocks have one line
_BLOCKS_OF_LINES = 0.2  # of them, with several lines each: paragraphs of a book have one
# Number and share of the sentences.
_FEWEST_BLOBS = 2
_BLOBS = 0.005
_SHOWN_SENTENCES = 3
_SHOWN_CHARACTERS = 40


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReadCorpus:
    """Documents and sentences of the beginning of a file.

    Attributes:
        source: path of the file, or "N files" for several together.
        section: of the config, for remedies: `vocab` or `preprocess`.
        sentences: of all documents.
        line_offsets: int64 [lines + 1] into the sentences, of paragraphs.
        documents: number of them.
        is_split: whether a splitter looked for the ends of sentences.
        layout: of plain text; None for other formats.
        sketch: the counts that the layout was guessed from; None for other formats.
        is_whole: whether these are all files of the sample.
    """

    source: str
    section: str
    sentences: Sequence[str]
    line_offsets: np.ndarray
    documents: int
    is_split: bool
    layout: str | None = None
    sketch: Sketch | None = None
    is_whole: bool = False

    @functools.cached_property
    def words(self) -> np.ndarray:
        """Return the words of each sentence, int64; white space separates them."""
        return np.array([sentence.count(" ") + 1 for sentence in self.sentences], np.int64)

    @property
    def lines(self) -> Iterator[Sequence[str]]:
        """Yield the sentences of each line."""
        for first, last in itertools.pairwise(self.line_offsets.tolist()):
            yield self.sentences[first:last]


def read_values(
    config: CorpusSection, blocks: Sequence[DocumentBlock], look: TextLook
) -> Iterator[ReadCorpus]:
    """Yield the files of a sample with their documents and sentences.

    Args:
        config: of `vocab` or `preprocess`.
        blocks: of the sample; those of a file need not be neighbors.
        look: layouts and sketches of the text files.

    Yields:
        Each file once, in the order of its first block.
    """
    by_source: dict[str, list[DocumentBlock]] = {}
    for block in blocks:
        by_source.setdefault(block.source, []).append(block)
    for source, of_file in by_source.items():
        layout = look.layouts.get(source)
        counts = np.concatenate([np.diff(block.line_offsets) for block in of_file])
        yield ReadCorpus(
            source=source,
            section=config.section_name,
            sentences=[text for block in of_file for text in block.sentences.to_pylist()],
            line_offsets=np.concatenate([[0], np.cumsum(counts)]),
            documents=sum(block.num_documents for block in of_file),
            is_split=config.sentence_splitter != "none" and layout != "sentences",
            layout=layout,
            sketch=look.sketches.get(source),
        )


def judge_corpus(files: Sequence[ReadCorpus]) -> dict[str, str]:
    """Return a warning of each detector that finds something, with the first file it is in.

    The files are also judged as one: a header in each of a thousand mails shows only in all mails
    together.

    Args:
        files: with their documents and sentences.

    Returns:
        Warnings by the name of the detector.
    """
    texts_by_detector: dict[str, list[tuple[str, str]]] = {}
    if len(files) == 1:
        files = [dataclasses.replace(files[0], is_whole=True)]
    for values in files:
        for finding in judge(values, CORPUS_DETECTORS):
            texts_by_detector.setdefault(finding.detector, []).append((values.source, finding.text))
    if len(files) > 1:
        together = _together(files)
        for finding in judge(together, CORPUS_DETECTORS):
            texts_by_detector.setdefault(finding.detector, [(together.source, finding.text)])
    warnings = {}
    for name, places in texts_by_detector.items():
        source, text = places[0]
        others = f" (and {quantity(len(places) - 1, 'other file')})" if len(places) > 1 else ""
        warnings[name] = f"{source}{others}: {text}"
    return warnings


def _together(files: Sequence[ReadCorpus]) -> ReadCorpus:
    """Join the values of all files, as if they were one."""
    counts = np.concatenate([np.diff(file.line_offsets) for file in files])
    sketches = [file.sketch for file in files if file.sketch is not None]
    return ReadCorpus(
        source=quantity(len(files), "file"),
        section=files[0].section,
        sentences=[text for file in files for text in file.sentences],
        line_offsets=np.concatenate([[0], np.cumsum(counts)]),
        documents=sum(file.documents for file in files),
        is_split=all(file.is_split for file in files),
        sketch=sum(sketches, Sketch()),
        is_whole=True,
    )


def first_sentences(files: Sequence[ReadCorpus]) -> list[str]:
    """Return a line with the first sentences of a corpus, if it has any."""
    sentences = next((file.sentences for file in files if file.sentences), ())
    begins = [shown_value(text, _SHOWN_CHARACTERS) for text in sentences[:_SHOWN_SENTENCES]]
    return [f"  first sentences: {', '.join(begins)}"] if begins else []


def _long_sentences(values: ReadCorpus) -> Details | None:
    """Find sentences so long that their ends were missed, if they hold much of the text."""
    words = values.words
    is_long = words > _LONGEST_SENTENCE
    in_long = words[is_long].sum() / max(words.sum(), 1)
    least = _IN_LONG_SENTENCES
    if is_long.sum() < _FEWEST_LONG:
        least = _IN_FEW_LONG_SENTENCES if values.is_whole else 1.0
    if in_long <= least:
        return None
    example = values.sentences[int(np.argmax(is_long))]
    return {
        "share": f"{in_long:.0%}",
        "most": _LONGEST_SENTENCE,
        "example": shown_value(example, _SHOWN_CHARACTERS),
        "section": values.section,
    }


def _keys(values: ReadCorpus) -> Details | None:
    """Find sentences with several keys each, as from headers and forms, and such keys in a row.

    Keys in a row count only if there is prose beside them and they differ: a text that is all keys
    may be wanted, and a dialog repeats the same names.
    """
    with_keys = [text for text in values.sentences if len(_KEY.findall(text)) >= _KEYS_OF_SENTENCE]
    is_text = values.sketch is not None and values.sketch.files > 0
    if not with_keys and is_text:
        with_keys = list(_headers(values.sentences))
    if len(with_keys) < max(_FEWEST_WITH_KEYS, _SENTENCES_OF_KEYS * len(values.sentences)):
        return None
    keys = ", ".join(key for key in _KEY.findall(with_keys[0])[:_KEYS_OF_SENTENCE])
    share = f"{len(with_keys) / len(values.sentences):.0%}"
    return {"share": share, "keys": keys, "section": values.section}


def _headers(sentences: Sequence[str]) -> Iterator[str]:
    """Yield the sentences of rows of headers, if each row repeats the keys of the first."""
    groups = itertools.groupby(sentences, lambda text: _HEADER.match(text) is not None)
    rows = [list(row) for is_header, row in groups if is_header]
    if sum(map(len, rows)) > _MOST_HEADERS * len(sentences):
        return
    keys_of_rows = [
        tuple(text.partition(":")[0] for text in row[:_KEYS_OF_SENTENCE]) for row in rows
    ]
    times = Counter(keys_of_rows)
    for row, keys in zip(rows, keys_of_rows, strict=True):
        if len(set(keys)) == _KEYS_OF_SENTENCE and times[keys] >= _FEWEST_WITH_KEYS:
            yield " ".join(row)


def _blocks(values: ReadCorpus) -> Details | None:
    """Find many blocks between blank lines in a single document: of several lines, or very many.

    One file with a paragraph per line may be a book. Several such files may be books, too, but the
    user should check them.
    """
    sketch = values.sketch
    if sketch is None or values.documents > sketch.files or sketch.is_wrapped:
        return None
    several = sketch.groups - sketch.single_groups
    are_several = several >= _BLOCKS_OF_LINES * sketch.groups
    if sketch.files == 1 and (sketch.groups < _FEWEST_BLOCKS or not are_several):
        return None
    if sketch.files > 1 and sketch.groups < _FEWEST_SINGLE_BLOCKS * sketch.files:
        return None
    return {
        "blocks": f"{sketch.groups:,}",
        "several": f"{several:,}",
        "section": values.section,
    }


def _unsplit(values: ReadCorpus) -> Details | None:
    """Find long paragraphs of a script of which none was ever split into sentences.

    A script of which one paragraph was split has marks that the splitter knows: its other long
    paragraphs are long sentences. Scripts that are only quoted do not count.
    """
    if not values.is_split:
        return None
    characters: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    was_split: set[str] = set()
    for sentences in values.lines:
        length = sum(map(len, sentences))
        script = main_script(sentences[0])
        characters[script] += length
        if len(sentences) > 1:
            was_split.add(script)
        elif length >= _long_line(script) or len(_INNER_MARK.findall(sentences[0])) >= _INNER_MARKS:
            lines[script] += 1
    total = characters.total()
    for script, count in lines.most_common():
        is_much = characters[script] >= _OF_SCRIPT * total and count >= _FEWEST_LONG_LINES
        if script != OTHER and script not in was_split and is_much:
            return {"script": script, "lines": quantity(count, "long paragraph")}
    return None


def _long_line(script: str) -> int:
    return _LONG_LINE if script in _WITH_CAPITALS else _LONG_LINE_OF_OTHERS


def _blobs(values: ReadCorpus) -> Details | None:
    """Find base64 or hexadecimal data among the sentences."""
    blobs = [text for text in values.sentences if is_blob(text)]
    if len(blobs) < max(_FEWEST_BLOBS, _BLOBS * len(values.sentences)):
        return None
    share = f"{len(blobs) / len(values.sentences):.1%}"
    return {"share": share, "example": shown_value(blobs[0], _SHOWN_CHARACTERS)}


CORPUS_DETECTORS: tuple[Detector[ReadCorpus], ...] = (
    Detector(
        name="long sentences",
        severity=Severity.WARNING,
        message="{share} of the words are in sentences of more than {most} words, such as "
        "{example}",
        remedy="check where sentences end: --set {section}.text_layout=…, or "
        "--set {section}.sentence_splitter=…",
        find=_long_sentences,
    ),
    Detector(
        name="keys in sentences",
        severity=Severity.WARNING,
        message="{share} of the sentences hold several keys such as {keys} as in headers and forms",
        remedy="remove such lines first, or write one sentence per line",
        find=_keys,
    ),
    Detector(
        name="blocks in a document",
        severity=Severity.WARNING,
        message="is read as one document, though blank lines separate {blocks} blocks, {several} "
        "of them with several lines",
        remedy="if each is a document, give --set {section}.text_layout=paragraph_lines (or "
        "sentences)",
        find=_blocks,
    ),
    Detector(
        name="unsplit script",
        severity=Severity.WARNING,
        message="none of {lines} in {script} was split into sentences",
        remedy="split such text first, one sentence per line: its script has no mark at the end of "
        "a sentence, or the text has none",
        find=_unsplit,
    ),
    Detector(
        name="base64",
        severity=Severity.WARNING,
        message="{share} of the sentences are base64 or hexadecimal digits, such as {example}",
        remedy="decode them, or remove such rows",
        find=_blobs,
    ),
)
