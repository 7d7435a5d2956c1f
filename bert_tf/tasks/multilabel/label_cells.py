"""Cells with any number of labels: lists, texts with a separator between labels, zeros and ones.

All cells of a column have one form. All of them are needed to find it, because a single cell may be
read in several ways: `0 1 1` may be three labels, or zeros and ones for three labels; `[a]` may be
a label, or a list.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import re
from collections.abc import Collection, Mapping, Sequence

from bert_tf.base.errors import Fault, UsageError
from bert_tf.base.wording import quantity, shortened
from bert_tf.data.tables.cells import GAPS, cell_text, list_in_text, value_in_text
from bert_tf.data.tables.file_rows import Table
from bert_tf.data.tables.label_lists import (
    LABEL_SEPARATORS,
    joined_labels,
    labels_of_object,
    lists_of_databases,
    scored_labels,
)
from bert_tf.data.tables.value_forms import is_quoted

_REASON = "label is neither a list nor a text of labels"
_IS_CUT = "label is a list that was cut to '...' when it was written"
_WIDTH = "label has another number of zeros and ones than most"
_NO_NUMBER = "label is not a number of --label-names"
_NO_NAME = "label is not one of --label-names"
_NO_TRUTH = "label is neither 0 nor 1"
_ZEROS_AND_ONES = re.compile(r"[01](?:\.0)?(?:[\s,;|]+[01](?:\.0)?)+")
_BITS_IN_A_ROW = re.compile(r"[01]{3,}")  # 0110
_FRACTION = re.compile(r"-?(0\.\d+|[01](\.0)?|\d(\.\d+)?e-\d+)")
_CUT = re.compile(r"(?:[\w.]+\()?[\[{].*\s\.\.\.[\s,].*[\]}][^\]}]*", re.DOTALL)
_OTHER_LIST = re.compile(r"(?:[\w.]+\()?[\[{]\s*['\"\[{].*[\]}]\)?", re.DOTALL)
_BRACKETS = re.compile(r"\[.*\]", re.DOTALL)
_BETWEEN_BITS = re.compile(r"[\s,;|]+")
_TRUTHS = {
    **dict.fromkeys(("1", "1.0", "true", "t", "yes", "y", "x", "✓", "✔", "☑"), True),
    **dict.fromkeys(("0", "0.0", "false", "f", "no", "n", "☐"), False),
}
# Between the last two of several labels; `kitchen and garden` may be one label, too.
_WORDS_BETWEEN = (" and ", " und ", " et ", " y ", " e ", " en ", " og ", " och ", " и ")
_BITS = ("0", "1", "0.0", "1.0", "true", "false")


@dataclasses.dataclass(frozen=True, kw_only=True)
class LabelForm:
    """The way a table writes the labels of its rows.

    Attributes:
        column: column of the labels; the name of the result if there is one column per label.
        columns: columns of zeros and ones, one per label; () if `column` has the labels.
        separator: separator of labels in a text.
        names: names of labels that are numbers, or places of zeros and ones; else ().
    """

    column: str
    columns: tuple[str, ...]
    separator: str
    names: tuple[str, ...]

    def listed(self, table: Table) -> Table:
        """Return the table with a JSON list of labels in each cell of `column`, each label once.

        Rejects rows whose cells are something else.

        Raises:
            RowsRejected: no row is left.
            UsageError: cells are zeros and ones whose labels have no names.
        """
        if self.columns:
            rows, faults = self._of_columns([table.columns[name] for name in self.columns])
        else:
            rows, faults = self._of_cells(table)
        cells = [json.dumps(labels, ensure_ascii=False) for labels in rows]
        kept = {name: texts for name, texts in table.columns.items() if name not in self.columns}
        listed = dataclasses.replace(table, columns={**kept, self.column: cells})
        return listed.rejecting(
            faults, advice=f"column {self.column!r} is read; choose another with --label-column"
        )

    def _of_columns(
        self, columns: Sequence[Sequence[str]]
    ) -> tuple[list[list[str]], dict[int, Fault]]:
        """Return the labels of each row, and faults by row, from columns of zeros and ones."""
        truths = [[_TRUTHS.get(cell.strip().lower()) for cell in cells] for cells in columns]
        # If no cell says no, empty ones do, as in a sheet with marks in some cells.
        if not any(False in truths_of_label for truths_of_label in truths):
            for truths_of_label, cells in zip(truths, columns, strict=True):
                for index, cell in enumerate(cells):
                    if not cell.strip():
                        truths_of_label[index] = False
        rows: list[list[str]] = []
        faults: dict[int, Fault] = {}
        for index, row in enumerate(zip(*truths, strict=True)):
            if None in row:
                place = row.index(None)
                faults[index] = _NO_TRUTH, f"{self.columns[place]}: {columns[place][index]!r}"
            rows.append([name for name, truth in zip(self.columns, row, strict=True) if truth])
        return rows, faults

    def _of_cells(self, table: Table) -> tuple[list[list[str]], dict[int, Fault]]:
        """Return the labels of each row, and faults by row, from cells with all labels of a row."""
        cells = table.columns[self.column]
        items = self._items_of_cells(table)
        self._check_no_probabilities(table, items)
        width = _width_of_vectors(items)
        if width:
            self._check_names(table, items, width)
        numbers = dict(enumerate(self.names))
        rows: list[list[str]] = []
        faults: dict[int, Fault] = {}
        for index, listed in enumerate(items):
            labels: list[str] = []
            if listed is None:
                reason = _IS_CUT if _CUT.fullmatch(cells[index].strip()) else _REASON
                faults[index] = reason, shortened(cells[index])
            elif width and len(listed) not in (0, width):
                faults[index] = _WIDTH, shortened(cells[index])
            elif width:
                named_bits = zip(self.names, listed, strict=False)
                labels = [name for name, bit in named_bits if _TRUTHS[bit.lower()]]
            else:
                labels = [label.strip() for label in listed]
                fault = _replace_numbers(labels, numbers) if numbers else None
                if "" in labels:
                    fault = _REASON, shortened(cells[index])
                if fault is not None:
                    faults[index] = fault
            rows.append(list(dict.fromkeys(labels)))
        return rows, faults

    def _items_of_cells(self, table: Table) -> list[list[str] | None]:
        """Return the labels, or the zeros and ones, in each cell; None for a cell of another form.

        Forms are tried in this order: zeros and ones with separators (`0 1 1`) and without
        (`011`), lists of databases, labels with scores (`a=1, b=0`), and then lists or texts with
        separators.
        """
        cells = table.columns[self.column]
        texts = {cell.strip() for cell in cells} - {""}
        if texts and all(map(_ZEROS_AND_ONES.fullmatch, texts)):
            return [_BETWEEN_BITS.split(cell.strip()) if cell.strip() else [] for cell in cells]
        if _are_bits_in_a_row(texts):
            return [list(cell.strip()) for cell in cells]
        lists = lists_of_databases(cells)
        if lists is not None:
            return [*lists]
        scored = scored_labels(cells)
        if scored is not None:
            return [*self._of_scored(table, scored)]
        gaps = GAPS if any(text.startswith(("[", "array(")) for text in texts) else ()
        # [a] is a label, unless there are lists such as [a, b].
        has_lists = any(_BRACKETS.fullmatch(text) and "," in text for text in texts)
        items: list[list[str] | None] = []
        for cell in cells:
            is_gap = cell.strip().lower() in gaps
            items.append([] if is_gap else _items(cell, self.separator, has_lists))
        return _without_quotes(items)

    def _of_scored(self, table: Table, rows: Sequence[Mapping[str, str]]) -> list[list[str]]:
        """Return the labels with a score of 1 in each row; raise UsageError unless all are 0 or 1.

        Args:
            table: the rows, for messages.
            rows: scores by label, as texts, of each row.
        """
        for index, scores in enumerate(rows):
            if not all(value in _TRUTHS for value in scores.values()):
                raise UsageError(
                    f"{table.source}: column {self.column!r} holds labels with scores (line "
                    f"{table.place(index)}: {shortened(table.columns[self.column][index])}); keep "
                    "the labels that a row has, without scores, or write 1 and 0"
                )
        return [[name for name, value in scores.items() if _TRUTHS[value]] for scores in rows]

    def _check_no_probabilities(self, table: Table, items: Sequence[list[str] | None]) -> None:
        """Raise UsageError if lists hold fractions: scores of labels, or logits."""
        filled = [listed for listed in items if listed]
        if {len(listed) for listed in filled} in ({0}, {1}, set()):
            return
        numbers = {item for listed in filled for item in listed}
        if all(map(_FRACTION.fullmatch, numbers)) and not numbers.issubset(_BITS):
            least = -1 if any(number.startswith("-") for number in numbers) else 0
            raise UsageError(
                f"{table.source}: column {self.column!r} holds lists of numbers from {least} to 1 "
                f"({shortened(filled[0])}); labels are needed, or zeros and ones with --label-names"
            )

    def _check_names(self, table: Table, items: Sequence[list[str] | None], width: int) -> None:
        """Raise UsageError if zeros and ones have no names, or another number of names."""
        first = next(index for index, listed in enumerate(items) if listed and len(listed) == width)
        seen = (
            f"{table.source}: column {self.column!r} holds {width} zeros and ones in each row "
            f"(line {table.place(first)}: {shortened(table.columns[self.column][first])})"
        )
        if not self.names:
            raise UsageError(
                f"{seen}, but their labels have no names; give these in order: --label-names A,B,C"
            )
        if len(self.names) != width:
            raise UsageError(f"{seen}, but --label-names has {quantity(len(self.names), 'name')}")


def listed_labels(cells: Sequence[str]) -> list[tuple[str, ...]]:
    """Parse cells as `LabelForm.listed` writes them."""
    return [tuple(json.loads(cell)) for cell in cells]


def likely_separator(sets: Sequence[Sequence[str]]) -> tuple[str, int, str] | None:
    """Guess the separator of labels that were read as one, such as `sports, politics`.

    A text counts as a separator if at least half of the labels that contain it have a part that
    also occurs in other labels.

    Args:
        sets: labels of each row.

    Returns:
        The separator, the number of such rows, and one such label; None if no other row has the
        parts.
    """
    counts = collections.Counter(label for labels in sets for label in labels)
    candidates = []
    for separator in LABEL_SEPARATORS:
        parts = {
            label: [part.strip() for part in label.split(separator)]
            for label in counts
            if separator in label
        }
        # Number of labels that contain each part, or consist of it.
        known = collections.Counter(label for label in counts if label not in parts)
        for pieces in parts.values():
            known.update(set(pieces))
        shared = [
            label for label, pieces in parts.items() if any(known[piece] > 1 for piece in pieces)
        ]
        if shared and 2 * len(shared) >= len(parts):
            candidates.append((separator, sum(counts[label] for label in parts), shared[0]))
    for word in _WORDS_BETWEEN:
        known_parts = [label for label in counts if _are_all_known(label.split(word), counts)]
        if known_parts:
            rows = sum(counts[label] for label in known_parts)
            candidates.append((word, rows, known_parts[0]))
    # Many labels have several words: a blank separates labels if these are labels of their own.
    joined = [label for label in counts if " " in label and joined_labels(label, counts) == " "]
    if joined and not candidates:
        candidates.append((" ", sum(counts[label] for label in joined), joined[0]))
    return max(candidates, key=lambda candidate: candidate[1], default=None)  # the most rows


def _are_all_known(parts: Sequence[str], labels: Collection[str]) -> bool:
    return len(parts) > 1 and all(part.strip() in labels for part in parts)


def _items(cell: str, separator: str, has_lists: bool) -> list[str] | None:
    """Return the labels of a cell, or its zeros and ones; None for a list of something else.

    Args:
        cell: the cell, as in the file.
        separator: separator of labels in a text.
        has_lists: whether other cells are lists, so that this one must be, too.
    """
    text = cell.strip()
    value = value_in_text(text) if text.startswith("{") else None
    if isinstance(value, dict):
        return labels_of_object(value) if value else []
    listed = list_in_text(text)
    if listed is None:
        is_list = has_lists and _BRACKETS.fullmatch(text)
        if is_list and (separator == "," or separator not in text):
            return None
        if _OTHER_LIST.fullmatch(text) or _CUT.fullmatch(text):
            return None
        parts = [piece.strip() for piece in cell.split(separator)]
        return [part for part in parts if part]
    if not all(isinstance(item, str | int | float) for item in listed):
        return None
    return [cell_text(item) for item in listed]


def _without_quotes(items: list[list[str] | None]) -> list[list[str] | None]:
    """Take the quotes off labels, if all have them: `"a";"b"` in a cell is `a` and `b`."""
    labels = {label for listed in items if listed for label in listed}
    if not labels or not all(map(is_quoted, labels)):
        return items
    return [listed and [label[1:-1] for label in listed] for listed in items]


def _are_bits_in_a_row(texts: Collection[str]) -> bool:
    """Return whether cells are such as `0110`: of equal length, and one begins with 0.

    Numbers, which could look alike, do not begin with 0.
    """
    return (
        bool(texts)
        and all(map(_BITS_IN_A_ROW.fullmatch, texts))
        and len(set(map(len, texts))) == 1
        and any(text.startswith("0") for text in texts)
    )


def _width_of_vectors(items: Sequence[list[str] | None]) -> int:
    """Return the number of zeros and ones in most cells; 0 if cells list each label once.

    Lists of numbers of labels may also consist of zeros and ones, but have no repeated ones.
    """
    filled = [listed for listed in items if listed]
    if not {item.lower() for listed in filled for item in listed}.issubset(_BITS):
        return 0
    widths = collections.Counter(map(len, filled))
    has_repeated = any(len(set(listed)) < len(listed) for listed in filled)
    width = max(widths, key=widths.__getitem__, default=0)
    return width if width > 1 and (len(widths) == 1 or has_repeated) else 0


def _replace_numbers(labels: list[str], names: Mapping[int, str]) -> Fault | None:
    """Put names in the place of numbers; return why a row cannot be used, or None.

    Args:
        labels: labels of a row, changed in place.
        names: names by number.
    """
    known = set(names.values())
    for place, label in enumerate(labels):
        if label in known:
            continue
        number = label.removesuffix(".0")
        if not number.isdecimal():
            return _NO_NAME, repr(label)
        if int(number) not in names:
            return _NO_NUMBER, repr(label)
        labels[place] = names[int(number)]
    return None


def is_one_column_of_many(sets: Sequence[Sequence[str]]) -> bool:
    """Return whether each row has a zero or a one, as a column of `LabelForm.columns` has."""
    return all(len(labels) == 1 and labels[0].lower() in _BITS for labels in sets)
