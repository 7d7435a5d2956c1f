"""The usable rows of a file with tagged words or entities, as flat arrays."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from bert_tf.base.arrays import flat_ranges, offsets_of
from bert_tf.base.console import Console
from bert_tf.base.errors import Fault, UsageError
from bert_tf.base.wording import quantity
from bert_tf.data.tables.cells import text_fault_of_words
from bert_tf.data.tables.dialect import PLAIN as PLAIN_DIALECT
from bert_tf.data.tables.dialect import TableBudget, TableDialect
from bert_tf.data.tables.file_rows import FileRows
from bert_tf.data.tables.formats.conll import is_conll
from bert_tf.data.tables.places import Places
from bert_tf.data.tables.rejects import Reject, keeping_rejects, nothing_usable
from bert_tf.tasks.tagging.options import AUTO, PLAIN
from bert_tf.tasks.tagging.row_forms import TagColumns, TaggedText, with_whole_words
from bert_tf.tasks.tagging.rows import read_tagged_rows
from bert_tf.tasks.tagging.schemes import OUTSIDE, recognized_scheme, tag_parts, tags_of_spans
from bert_tf.tasks.tagging.spellings import (
    are_numbers,
    named_tags,
    shown_spellings,
    usual_spellings,
)
from bert_tf.tasks.tagging.words import (
    TaggedWords,
    TextWords,
    begin_or_end_in_words,
    have_characters,
    tags_of_all,
)

_SPANS_SCHEME = "bio"  # of texts with entities, unless the options name another scheme
_BRACKETS = re.compile(r"(\([^()*]+)*\*?\)*")  # (PERSON*, *, *), (GPE)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaggedTexts(FileRows):
    """Rows of texts with marks, which are words or entities; the marks of all rows are end to end.

    Attributes:
        texts: the text of each row.
        has_words: whether the marks are words.
        offsets: int64 [rows + 1]; row i has the marks `offsets[i]` to `offsets[i + 1] - 1`.
        starts, ends: int64 [marks], characters in the row's text; the end is exclusive.
        tags: tag or label of each mark.
        mark_lines: line of each mark, counted from 1.
    """

    row_fields: ClassVar[tuple[str, ...]] = ("texts",)

    texts: list[str]
    has_words: bool
    offsets: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    tags: list[str]
    mark_lines: list[int]

    @property
    def owners(self) -> np.ndarray:
        """Return the row of each mark, int64 [marks]."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def marks_of_rows(self) -> Iterator[tuple[list[str], list[str]]]:
        """Yield the texts of each row's marks, and their tags."""
        for text, (first, last) in zip(self.texts, itertools.pairwise(self.offsets), strict=True):
            bounds = zip(self.starts[first:last], self.ends[first:last], strict=True)
            yield [text[start:end] for start, end in bounds], self.tags[first:last]

    @property
    def words(self) -> TextWords:
        """Return the marks as words."""
        return TextWords(offsets=self.offsets, starts=self.starts, ends=self.ends)

    @property
    def marked(self) -> list[list[dict[str, Any]]]:
        """Return the `{start, end, label}` of each row's marks."""
        marks = zip(self.starts.tolist(), self.ends.tolist(), self.tags, strict=True)
        listed = [{"start": start, "end": end, "label": tag} for start, end, tag in marks]
        bounds = itertools.pairwise(self.offsets.tolist())
        return [listed[begin:end] for begin, end in bounds]

    def selected(self, rows: np.ndarray, rejects: list[Reject]) -> Self:
        counts = np.diff(self.offsets)[rows]
        marks = flat_ranges(self.offsets[rows], counts)
        return dataclasses.replace(
            super().selected(rows, rejects),
            offsets=offsets_of(counts),
            starts=self.starts[marks],
            ends=self.ends[marks],
            tags=[self.tags[mark] for mark in marks.tolist()],
            mark_lines=[self.mark_lines[mark] for mark in marks.tolist()],
        )


def read_tagged_texts(
    path: str | Path,
    columns: TagColumns,
    *,
    dialect: TableDialect = PLAIN_DIALECT,
    max_rows: int = 0,
    console: Console | None = None,
) -> TaggedTexts:
    """Read a whole file, its tags unchanged; it is CoNLL by its extension, otherwise a table.

    Args:
        path: the file.
        columns: names of its columns.
        dialect: how it is written.
        max_rows: read only the first rows, rejected ones included (0: all).
        console: receives notes on how the rows are read; None for none.

    Raises:
        InputError: no row can be used, or they take too much memory.
        UsageError: the file is missing or lacks a column.
    """
    budget = TableBudget(path, dialect.max_table_megabytes)
    usable: list[TaggedText] = []
    rejects: list[Reject] = []
    places = Places()
    with keeping_rejects(rejects):
        rows = read_tagged_rows(path, columns, dialect, console, places)
        for count, row in enumerate(rows, start=1):
            fault = row.fault or text_fault_of_words(row.text)
            if fault:
                rejects.append(Reject.at(path, places.at(row.line), *fault))
            else:
                usable.append(row)
            budget.add(1 + len(row.tags), (row.text,))
            if count == max_rows:
                break
    if not usable:
        raise nothing_usable(path, rejects)
    usable = with_whole_words(path, usable, console)
    return TaggedTexts(
        source=str(path),
        texts=[row.text for row in usable],
        lines=[row.line for row in usable],
        places=places,
        has_words=usable[0].has_words,
        offsets=offsets_of(np.array([len(row.tags) for row in usable], np.int64)),
        starts=np.array([start for row in usable for start in row.starts], np.int64),
        ends=np.array([end for row in usable for end in row.ends], np.int64),
        tags=[tag for row in usable for tag in row.tags],
        mark_lines=[line for row in usable for line in row.lines],
        rejects=rejects,
    )


def usual_tags(
    texts: TaggedTexts,
    scheme: str,
    names: Sequence[str],
    console: Console,
    known: Collection[str] = (),
) -> TaggedTexts:
    """Write tags as the schemes spell them, see `usual_spellings`.

    Args:
        texts: rows as they were read.
        scheme: the option, or the model's scheme.
        names: names for tags that are numbers, from 0.
        known: tags and types of the model, which stay as they are; () in training.

    Raises:
        UsageError: tags are numbers without names, or in brackets.
        RowsRejected: no row has only numbers of `names`.
    """
    if not texts.has_words:
        if not known:
            _check_types(texts, names, console)
        return texts
    tags = set(texts.tags)
    known_names = {OUTSIDE, *names}
    if names and any(are_numbers([tag]) for tag in tags - known_names):
        texts = dataclasses.replace(texts, tags=named_tags(texts.tags, names))
        texts = _rejected(
            texts,
            [tag not in known_names for tag in texts.tags],
            "tag is not a number of --tag-names",
        )
    elif scheme != PLAIN and are_numbers(tags - {OUTSIDE}) and not tags.issubset(known):
        numbers = sorted(tags - {OUTSIDE}, key=float)
        cure = (
            "name the tags in this order, from 0: --tag-names O,B-PER,I-PER,… (or --scheme plain, "
            "if the numbers are labels of their own)"
        )
        if known:
            cure = (
                "the model was trained on names: write them in place of the numbers, or fine-tune "
                "with --tag-names, which it keeps"
            )
        raise UsageError(
            f"{texts.source}: its tags are the numbers {numbers[0]} to {numbers[-1]}, without "
            f"names; {cure}"
        )
    elif scheme != PLAIN and "*" in tags and all(map(_BRACKETS.fullmatch, tags)):
        raise UsageError(
            f"{texts.source}: its tags are the brackets of CoNLL-2012 (such as "
            f"{max(tags, key=len)!r}, and '*' for words outside and inside entities); write "
            "them as B-PERSON, I-PERSON and O"
        )
    elif names and not known:
        console.warn(f"{texts.source}: no tag is a number, so --tag-names is not used here")
    if scheme == PLAIN and not known:
        return texts
    spelled = usual_spellings(collections.Counter(texts.tags))
    spelled = {tag: usual for tag, usual in spelled.items() if tag not in known}
    if not spelled:
        return texts
    console.info(f"{texts.source}: {shown_spellings(spelled)} (--scheme plain: as they are)")
    return dataclasses.replace(texts, tags=[spelled.get(tag, tag) for tag in texts.tags])


def _check_types(texts: TaggedTexts, names: Sequence[str], console: Console) -> None:
    """Refuse names of tags for rows of entities, and warn of labels that look like tags."""
    if names:
        raise UsageError(
            f"{texts.source}: --tag-names is for tags of words that are numbers, and its rows have "
            "entities with labels; leave it out"
        )
    if recognized_scheme(collections.Counter(texts.tags)) != PLAIN:
        first = texts.tags[0]
        console.warn(
            f"{texts.source}: entities have labels such as {first!r}, which look like tags of "
            "words; they are read as types: label whole entities without the prefix"
        )


def check_sentence_column(texts: TaggedTexts, column: str | None) -> None:
    """Raise UsageError if a column of sentences is named for a file without a word per row."""
    has_lines = texts.has_words and len(set(texts.mark_lines)) > len(texts)
    if column is not None and (not has_lines or is_conll(texts.source)):
        raise UsageError(
            f"{texts.source}: --sentence-column is for tables with a word per row, which this is "
            "not; leave it out"
        )


def scheme_of(texts: TaggedTexts, wanted: str) -> str:
    """Return the wanted scheme, or that of a file's tags for `auto`.

    Raises:
        UsageError: only some of the tags have a prefix.
    """
    if wanted != AUTO:
        return wanted
    if not texts.has_words:
        return _SPANS_SCHEME
    counts = collections.Counter(texts.tags)
    recognized = recognized_scheme(counts)
    inside = {tag: count for tag, count in counts.items() if tag != OUTSIDE}
    prefixed = [tag for tag in inside if tag[:2] in ("B-", "I-") and len(tag) > 2]
    count = sum(inside[tag] for tag in prefixed)
    of_all = sum(inside.values())
    is_most = 2 * count >= of_all or 2 * len(prefixed) > len(inside)
    if recognized == PLAIN and prefixed and is_most:
        other = next(tag for tag in inside if tag not in prefixed)
        raise UsageError(
            f"{texts.source}: {count:,} of {of_all:,} words with a tag have one such as "
            f"{prefixed[0]!r}, the others one such as {other!r}; give --scheme bio to reject "
            "sentences with the others, or --scheme plain if each tag is a label of its own"
        )
    return recognized


def checked_tags(
    texts: TaggedTexts, scheme: str, kinds: Collection[str] | None, console: Console
) -> TaggedTexts:
    """Reject rows with unknown tags, and convert the others to the model's scheme.

    Tags that are not well-formed are read as by `entity_spans`, with a warning.

    Args:
        texts: rows with tags as `usual_tags` writes them.
        scheme: scheme of the model.
        kinds: types of the model; None to learn all types.

    Raises:
        RowsRejected: no row is left.
    """
    if not texts.has_words:
        _warn_of_cut_words(texts, console)
        return _known(texts, [[tag] for tag in texts.tags], kinds)
    own = scheme if scheme == PLAIN else _own_scheme(texts, scheme)
    parts = {tag: tag_parts(tag, own) for tag in set(texts.tags)}
    texts = _rejected(
        texts,
        [parts[tag] is None for tag in texts.tags],
        "tag is empty" if own == PLAIN else f"tag is not one of {own.upper()}",
    )
    kinds_of_tag = {tag: [part.kind] if part and part.kind else [] for tag, part in parts.items()}
    texts = _known(texts, [kinds_of_tag[tag] for tag in texts.tags], kinds)
    if scheme == PLAIN:
        return texts
    seen = have_characters(texts.texts, texts.words)
    console.warn(*_ill_formed(texts, _well_formed(texts, seen, own, own), seen, own))
    return dataclasses.replace(texts, tags=_well_formed(texts, seen, own, scheme))


def _well_formed(texts: TaggedTexts, seen: np.ndarray, own: str, scheme: str) -> list[str]:
    """Convert tags between schemes.

    Args:
        texts: rows of words.
        seen: bool [words], False for words that the tokenizer drops; they interrupt no entity.
        own: scheme of the tags.
        scheme: scheme to write them in.
    """
    tags = [texts.tags[word] for word in np.flatnonzero(seen).tolist()]
    tagged = TaggedWords.gold(texts.words.selected(seen), tags)
    numbers: dict[str, int] = {}
    spans = tagged.spans(own, numbers)
    tags = tags_of_spans(spans, len(tags), list(numbers), scheme)
    return tags_of_all(dataclasses.replace(tagged, tags=tags), seen, scheme)


def _own_scheme(texts: TaggedTexts, scheme: str) -> str:
    """Return the scheme of a file's tags; the model's if it fits all of them."""
    counts = collections.Counter(texts.tags)
    if all(tag_parts(tag, scheme) for tag in counts):
        return scheme
    recognized = recognized_scheme(counts)
    return scheme if recognized == PLAIN else recognized


def _known(
    texts: TaggedTexts, kinds_of_mark: list[list[str]], kinds: Collection[str] | None
) -> TaggedTexts:
    """Reject rows with types that the model does not know.

    Args:
        texts: rows.
        kinds_of_mark: types of each mark; [] for O.
        kinds: types of the model; None knows all.
    """
    if kinds is None:
        return texts
    known = set(kinds)
    unknown = [not known.issuperset(names) for names in kinds_of_mark]
    folded = {kind.casefold(): kind for kind in kinds}
    likely: dict[str, str] = {}
    for mark in np.flatnonzero(unknown).tolist():
        for name in kinds_of_mark[mark]:
            if name.casefold() in folded:
                likely[texts.tags[mark]] = folded[name.casefold()]
    return _rejected(texts, unknown, "tag is not one the model knows", likely)


def _rejected(
    texts: TaggedTexts, is_fault: list[bool], reason: str, likely: Mapping[str, str] = {}
) -> TaggedTexts:
    """Reject the rows of marks with a fault.

    Args:
        texts: rows.
        is_fault: whether each mark has a fault.
        reason: reason of the rejects.
        likely: the tag that was likely meant, by tag.
    """
    faults: dict[int, Fault] = {}
    owners = texts.owners
    for mark in np.flatnonzero(is_fault).tolist():
        line = texts.mark_lines[mark]
        tag = texts.tags[mark]
        row = int(owners[mark])
        detail = repr(tag)
        if line != texts.lines[row]:
            detail = f"line {texts.places.at(line)}: {tag!r}"
        if tag in likely:
            detail += f", likely {likely[tag]!r}: case counts"
        faults.setdefault(row, (reason, detail))
    return texts.rejecting(faults)


def _ill_formed(
    texts: TaggedTexts, well_formed: list[str], seen: np.ndarray, scheme: str
) -> Iterator[str]:
    """Yield a line on the tags that were not well-formed."""
    marks = [
        mark
        for mark, (tag, right) in enumerate(zip(texts.tags, well_formed, strict=True))
        if tag != right and seen[mark]
    ]
    if not marks:
        return
    first = marks[0]
    row = int(texts.owners[first])
    line = texts.places.at(texts.mark_lines[first])
    is_begin = first == texts.offsets[row]
    is_end = first + 1 == texts.offsets[row + 1]
    before = "the beginning" if is_begin else texts.tags[first - 1]
    after = "the end" if is_end else texts.tags[first + 1]
    yield (
        f"{texts.source}: {quantity(len(marks), 'tag')} of {len(texts.tags):,} "
        f"not well-formed {scheme.upper()}, first at line {line}: "
        f"{texts.tags[first]} between {before} and {after}, expected {well_formed[first]}; read as "
        "conlleval does: a tag that continues no entity begins one"
    )


def _warn_of_cut_words(texts: TaggedTexts, console: Console) -> None:
    """Warn of entities that begin or end inside a word: the model only knows whole words."""
    cut = np.flatnonzero(begin_or_end_in_words(texts.texts, texts.words))
    if len(cut):
        first = int(cut[0])
        line = texts.places.at(texts.mark_lines[first])
        span = texts.texts[texts.owners[first]][texts.starts[first] : texts.ends[first]]
        console.warn(
            f"{texts.source}: {quantity(len(cut), 'entity', 'entities')} of {len(texts.tags):,} "
            f"begin or end inside a word, first at line {line} ({span!r}); "
            "whole words are used, which only offset_f1 counts as errors"
        )
