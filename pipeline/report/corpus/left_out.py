"""Text that each rule of preprocessing leaves out of a sample.

Each rule is applied by itself to the whole sample, also if it is off, so that its effect can be
seen before it is turned on. A job counts a document under the first rule that drops it, so its
counts may be lower.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np

from bert_tf.base.errors import InputError
from bert_tf.config.sections.data import CorpusSection
from bert_tf.tasks.base.report_sections import Example
from pipeline.beam.files import UncompressedFile, match_files
from pipeline.corpus.curation.excluded_files import match_excluded, read_excluded
from pipeline.corpus.curation.exclusion import EXCLUDED, find_shared, list_shared
from pipeline.corpus.curation.personal_data import PersonalData
from pipeline.corpus.curation.rule import curate
from pipeline.corpus.document_block import DocumentBlock
from pipeline.corpus.documents import (
    LIMIT_KEYS,
    TOO_FEW_WORDS,
    DocumentRules,
    clean_raw,
    measure_documents,
)
from pipeline.corpus.evidence import Evidence, join_evidence
from pipeline.corpus.lines import clean_lines
from pipeline.corpus.raw_block import SENTENCE_LINES, RawBlock, gather, split_lines
from pipeline.corpus.readers.formats import format_of
from pipeline.corpus.web_pages import BOILERPLATE_LINE, find_boilerplate, strip_markup

_STEP_BYTES = 1 << 20  # read at once
_MOST_BYTES = 64_000_000  # of a file, searched for a line
_BEFORE_FAULT = 200  # bytes shown before a byte that is not UTF-8
_SHOWN_SENTENCES = 8  # of a document
_USUAL_WORDS = 50  # of a document, at least: Rae et al. 2021, A.1.1
_FORMATS_OF_LINES = ("text", "jsonl", "csv", "tsv")
_SHOWN_BYTES = 1000  # of a line or document


@dataclasses.dataclass
class LeftOut:
    """Text that a rule drops, or would drop if it were on.

    Attributes:
        rule: its name, which is the reason in counts and rejects.
        key: the setting that turns it on.
        is_on: whether it is on.
        number: documents, lines or rows in the sample.
        examples: some of them.
    """

    rule: str
    key: str
    is_on: bool
    number: int = 0
    examples: list[Example] = dataclasses.field(default_factory=list)

    def add(self, examples: Iterable[Example], number: int, most: int) -> None:
        """Add the findings of a block.

        Args:
            examples: examples, taken until there are `most`.
            number: of all findings.
            most: examples in all.
        """
        self.number += number
        for example in examples:
            if len(self.examples) >= most:
                return
            self.examples.append(example)


def left_out(
    config: CorpusSection, raw: Sequence[RawBlock], blocks: Sequence[DocumentBlock], *, most: int
) -> list[LeftOut]:
    """Apply each rule to the whole sample.

    Args:
        config: of `vocab` or `preprocess`.
        raw: the sample as read.
        blocks: the sample cleaned, without limits and curation.
        most: examples of each rule.

    Returns:
        Always `boilerplate` and the minimum of words; others if they are on, or leave text out.
    """
    return [
        *_rejects(config, blocks, most),
        _boilerplate(config, raw, most),
        *_curated(config, raw, most),
        *_excluded(config, blocks, most),
        *_limits(config, blocks, most),
        *_counted(blocks),
    ]


def _rejects(config: CorpusSection, blocks: Sequence[DocumentBlock], most: int) -> list[LeftOut]:
    """Return unreadable texts with their lines."""
    rules: dict[str, LeftOut] = {}
    for block in blocks:
        for reject in block.evidence.rejects:
            if reject.reason not in rules:
                rules[reject.reason] = LeftOut(reject.reason, "always: it cannot be read", True)
            facts = {"file": reject.source, "detail": reject.detail or "none"}
            example = Example(line=reject.line, facts=facts, texts={})
            rules[reject.reason].add([example], 1, most)
    for rule in rules.values():
        # Personal data cannot be replaced in unreadable text, so its lines are not shown.
        if not config.personal_data:
            rule.examples = _with_lines(config, rule.examples)
    return list(rules.values())


def _with_lines(config: CorpusSection, examples: Sequence[Example]) -> list[Example]:
    """Add the text of their first line to examples, for formats that have lines."""
    numbers: dict[str, list[int]] = {}
    for example in examples:
        path = example.facts["file"]
        if example.line is not None and format_of(path, config) in _FORMATS_OF_LINES:
            numbers.setdefault(path, []).append(example.line)
    lines = {
        path: stored_lines(path, wanted, encoding=config.encoding)
        for path, wanted in numbers.items()
    }
    with_lines = []
    for example in examples:
        line = lines.get(example.facts["file"], {}).get(example.line or 0)
        texts = example.texts if line is None else {"line": line}
        with_lines.append(dataclasses.replace(example, texts=texts))
    return with_lines


def _boilerplate(config: CorpusSection, raw: Sequence[RawBlock], most: int) -> LeftOut:
    """Return lines that cleaning drops as boilerplate; personal data in them is replaced."""
    is_on = "boilerplate" in config.cleaning
    personal = PersonalData.from_config(config)
    rule = LeftOut(BOILERPLATE_LINE, "cleaning: boilerplate", is_on)
    for block in raw:
        texts = block.texts
        if "html" in config.cleaning:
            end = b" " if block.layout == SENTENCE_LINES else b"\n"
            texts = strip_markup(texts, paragraph_end=end)
        starts, stops, owners = split_lines(texts.data, texts.starts, texts.stops)
        lines = clean_lines(texts.data, starts, stops, config.cleaning)
        numbers = np.flatnonzero(find_boilerplate(lines))
        some = numbers[: most - len(rule.examples)]
        data, begins, ends, _ = personal.replace(
            lines.data, lines.offsets[some], lines.offsets[some + 1] - 1
        )
        places = zip(texts.lines[owners[some]], gather(data, begins, ends), strict=True)
        examples = (
            Example(line=int(line), facts={"file": block.source}, texts={"line": text.as_py()})
            for line, text in places
        )
        rule.add(examples, len(numbers), most)
    return rule


def _curated(config: CorpusSection, raw: Sequence[RawBlock], most: int) -> Iterator[LeftOut]:
    """Yield the texts that each rule drops by itself, with examples chosen like a job's samples."""
    rules = DocumentRules.from_config(config)
    if not rules.curation:
        return
    parts: list[Evidence] = []
    for block in raw:
        lines = dataclasses.replace(clean_raw(block, rules), evidence=Evidence())
        for rule in rules.curation:
            parts.append(curate(block.source, lines, [rule], rules.personal_data).evidence)
    evidence = join_evidence(parts)
    for rule in rules.curation:
        noun = "line" if rule.of_lines else "document"
        counts = evidence.dropped_lines if rule.of_lines else evidence.dropped
        examples = [
            Example(
                line=sample.line,
                facts={"file": sample.source, "has": f"{sample.value:.4g}"},
                texts={noun: sample.text},
            )
            for sample in evidence.samples.get(rule.name, ())[:most]
        ]
        yield LeftOut(rule.name, rule.set_by, True, counts.get(rule.name, 0), examples)


def _excluded(config: CorpusSection, blocks: Sequence[DocumentBlock], most: int) -> list[LeftOut]:
    """Return documents that share text with evaluation sets."""
    if not config.exclude:
        return []
    excluded, _ = read_excluded(config, match_excluded(config, match_files(config.input)))
    rule = LeftOut(EXCLUDED, f"exclude, to {config.exclude_action}", True)
    for block in blocks:
        stretches = find_shared(block, excluded)
        examples = (
            Example(
                line=shared.line,
                facts={
                    "file": shared.source,
                    "is in": f"line {shared.exclude_line} of {shared.exclude}",
                },
                texts={"shared": shared.text},
            )
            for shared in list_shared(block, stretches, excluded)
        )
        rule.add(examples, len(np.unique(stretches.documents)), most)
    return [rule]


def _limits(config: CorpusSection, blocks: Sequence[DocumentBlock], most: int) -> list[LeftOut]:
    """Return documents below each limit; without a limit of words, those below the usual one."""
    rules = []
    for reason, key in LIMIT_KEYS.items():
        limit = getattr(config, key)
        is_on = bool(limit)
        if not is_on and reason == TOO_FEW_WORDS:
            limit = _USUAL_WORDS
        if not limit:
            continue
        rule = LeftOut(reason, f"{key}: {limit}", is_on)
        for block in blocks:
            size = measure_documents(block)[reason]
            short = np.flatnonzero(size < limit)
            rule.add(_documents(block, short, size), len(short), most)
        rules.append(rule)
    return rules


def _documents(block: DocumentBlock, numbers: np.ndarray, size: np.ndarray) -> Iterator[Example]:
    """Yield the beginnings of documents, by their numbers in the block; `size` is [documents]."""
    for number in numbers.tolist():
        begin, end = block.document_offsets[number : number + 2].tolist()
        sentences = block.sentences.slice(begin, min(end - begin, _SHOWN_SENTENCES))
        yield Example(
            line=int(block.document_lines[number]),
            facts={"file": block.source, "has": f"{size[number]:.4g}"},
            texts={"document": " ".join(sentences.to_pylist())[:_SHOWN_BYTES]},
        )


def _counted(blocks: Sequence[DocumentBlock]) -> list[LeftOut]:
    """Return the texts left out or replaced when the sample was cleaned."""
    evidence = join_evidence(block.evidence for block in blocks)
    counts = Counter(evidence.dropped) + Counter(evidence.dropped_lines)
    counts.pop(BOILERPLATE_LINE, None)  # with examples above
    rules = [LeftOut(reason, "always", True, number) for reason, number in counts.items()]
    for kind, number in evidence.replaced.items():
        rules.append(LeftOut(f"{kind}, replaced", "personal_data", True, number))
    return rules


def stored_lines(path: str, numbers: Collection[int], *, encoding: str) -> dict[int, str]:
    """Read numbered lines of a file, at most 1,000 bytes of each.

    A line with bad UTF-8 is shown from shortly before the fault, with the bad bytes escaped.

    Args:
        path: of a file, which may be compressed.
        numbers: of the lines, from 1.
        encoding: of the file.

    Returns:
        The lines that were found, by number; only the first 64 MB are searched.
    """
    texts: dict[int, str] = {}
    wanted = set(numbers)
    number = 1  # of the line that `rest` begins
    rest = b""  # of a line whose end was not read yet
    done = 0
    # The sample read the file without damage, so damage is in a later part.
    with contextlib.suppress(InputError), UncompressedFile(path, encoding) as file:
        while wanted and done < _MOST_BYTES:
            part = file.read(_STEP_BYTES)
            if not part:
                break
            done += len(part)
            *lines, rest = (rest + part).split(b"\n")
            reached = [place for place in wanted if place < number + len(lines)]
            for place in reached:
                texts[place] = _shown(lines[place - number])
                wanted.remove(place)
            number += len(lines)
    if number in wanted and rest:
        texts[number] = _shown(rest)
    return texts


def _shown(line: bytes) -> str:
    """Return the beginning of a line, or the part around its first fault."""
    begin = 0
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        begin = _border(line, max(error.start - _BEFORE_FAULT, 0))
    end = _border(line, begin + _SHOWN_BYTES)
    text = line[begin:end].decode("utf-8", "backslashreplace")
    return f"{'…' if begin else ''}{text}{'…' if end < len(line) else ''}"


def _border(line: bytes, place: int) -> int:
    """Return the start of the UTF-8 character that has the byte at an offset."""
    border = min(place, len(line))
    # A character has four bytes at most, so three steps back find its first one.
    while border > place - 3 and 0 < border < len(line) and line[border] & 0xC0 == 0x80:
        border -= 1
    return border
