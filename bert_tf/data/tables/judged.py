"""Judge the values read from a file, as a person looking at them would.

A reader takes any value that its format allows: a file whose words are `1`, `2`, `3`, or whose
labels are `{garden` and `kitchen}`, is read without a fault and trains a model of nonsense. A
`Detector` knows one kind of such files: what it looks like, what to do, and how sure that is.
`judge` runs the tables of detectors on the values: `ROW_DETECTORS` (`detectors`) on labeled
rows and rows to score, `CORPUS_DETECTORS` (`pipeline/report/corpus/judged.py`) on samples of
corpora.

A detector only looks at values, never at how they were read, so it also catches misreadings that
were not foreseen. It must stay silent on sound files: fewer than 1% of them, cut into files of 200
rows, may raise a false alarm (`benchmarks/false_alarms.py`).
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from bert_tf.base.console import Console
from bert_tf.base.errors import BertPipelineError, InputError
from bert_tf.base.wording import quantity, shortened
from bert_tf.data.tables.places import Places

MOST_ROWS = 5000  # judged, spread evenly over the file; enough to see rates of a percent
SHOWN_ROWS = 2  # of a file, as examples for the user
_SHOWN_CHARACTERS = 60  # of a value
_SHOWN_WORDS = 8

Values = TypeVar("Values")
Details = Mapping[str, Any]  # values of a finding, by their names in message and remedy


class Severity(enum.Enum):
    """How sure a detector is that something is wrong."""

    NOTE = "note"  # worth knowing; nothing may be wrong
    WARNING = "warning"  # probably wrong
    ERROR = "error"  # certainly wrong: the model could not learn what is meant


@dataclasses.dataclass(frozen=True, kw_only=True)
class Detector(Generic[Values]):
    """One kind of file that is read without a fault, though it means something else.

    Attributes:
        name: name in the table of docs/tables.md.
        severity: how sure the detector is.
        message: the finding, with names of `Details` in braces.
        remedy: advice for the user, likewise.
        find: judges the values; None if they are sound.
        error: the exception for an ERROR: UsageError if other flags read the file rightly, else
            InputError.
    """

    name: str
    severity: Severity
    message: str
    remedy: str
    find: Callable[[Values], Details | None]
    error: type[BertPipelineError] = InputError


@dataclasses.dataclass(frozen=True)
class Finding:
    """Message of a detector about a file; `text` has no file name."""

    detector: str
    severity: Severity
    text: str
    error: type[BertPipelineError]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Spans:
    """Entities of texts, all int64 [entities]."""

    rows: np.ndarray  # the text of each
    starts: np.ndarray  # its first character, from 0
    ends: np.ndarray  # the one after its last


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReadValues:
    """The values that a task takes from the usable rows of a file.

    Attributes:
        source: the file.
        lines: the line of each row, from 1.
        places: the names of the rows of these lines.
        texts: the texts of each row, by column.
        gold: the label of each row in the form shown to the user, by column.
        labels: the labels of all rows, words or entities, end to end.
        words: the words of each row, or of a sample of many rows; empty if rows are not lists of
            words.
        words_have_lines: whether each word has a line of the file.
        is_words_column_given: whether the user has named the column of words.
        entities: entities of the texts; None for tasks without entities.
        used: columns that are read.
        others: the first values of the columns that are not read, by column.
        has_label_lists: whether a row may have several labels.
        pairs_match: whether each row is taken as a pair of texts that match.
        may_be_pair: whether the task could read a second text, but does not.
        shown: the first rows in the form shown to the user, by column; if empty, texts and gold
            are shown.
    """

    source: str
    lines: Sequence[int]
    places: Places = dataclasses.field(default_factory=Places)
    texts: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    gold: Mapping[str, Sequence[Any] | np.ndarray] = dataclasses.field(default_factory=dict)
    labels: Sequence[str] = ()
    words: Sequence[Sequence[str]] = ()
    words_have_lines: bool = False
    is_words_column_given: bool = False
    entities: Spans | None = None
    used: Sequence[str] = ()
    others: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict)
    has_label_lists: bool = False
    pairs_match: bool = False
    may_be_pair: bool = False
    shown: Sequence[Mapping[str, Any]] = ()

    @functools.cached_property
    def label_counts(self) -> collections.Counter[str]:
        """Count each label."""
        return collections.Counter(self.labels)


def spread(count: int, most: int = MOST_ROWS) -> list[int]:
    """Choose at most `most` of `count` rows, spread evenly."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64)).tolist()


def counted(part: int, whole: int, noun: str) -> str:
    """Write a share for a message: `3 of 50 texts`."""
    return f"{part:,} of {quantity(whole, noun)}"


def judge(values: Values, detectors: Iterable[Detector[Values]]) -> Iterator[Finding]:
    """Yield the findings of the detectors."""
    for detector in detectors:
        details = detector.find(values)
        if details is not None:
            message = detector.message.format(**details)
            remedy = detector.remedy.format(**details)
            text = f"{message}; {remedy}"
            yield Finding(detector.name, detector.severity, text, detector.error)


def report(source: str, findings: Iterable[Finding], console: Console) -> None:
    """Show findings about a file; raise the first error."""
    for finding in findings:
        line = f"{source}: {finding.text}"
        match finding.severity:
            case Severity.ERROR:
                raise finding.error(line)
            case Severity.WARNING:
                console.warn(line)
            case Severity.NOTE:
                console.info(f"note: {line}")


def first_values(values: ReadValues) -> Iterator[str]:
    """Yield lines with the first rows: `  text: 'The lamp was …'  label: 'billing'`."""
    for row in values.shown or _first_rows(values):
        cells = (f"{name}: {shown_value(value)}" for name, value in row.items())
        yield f"  {'  '.join(cells)}"


def _first_rows(values: ReadValues) -> Iterator[Mapping[str, Any]]:
    columns = {**values.texts, **values.gold}
    for row in range(min(len(values.lines), SHOWN_ROWS)):
        yield {name: cells[row] for name, cells in columns.items()}


def shown_value(value: Any, longest: int = _SHOWN_CHARACTERS) -> str:
    """Write a value as Python does, a text cut to its first characters and `…`."""
    if isinstance(value, str):
        return repr(value if len(value) <= longest else value[: longest - 1] + "…")
    return shortened(value.item() if isinstance(value, np.generic) else value, longest)


def shown_words(words: Sequence[str], tags: Sequence[str]) -> str:
    """Write the first words of a sentence with their tags: `anna/B-PER met/O …`."""
    pairs = zip(words[:_SHOWN_WORDS], tags[:_SHOWN_WORDS], strict=True)
    more = " …" if len(words) > _SHOWN_WORDS else ""
    return " ".join(f"{word}/{tag}" for word, tag in pairs) + more
