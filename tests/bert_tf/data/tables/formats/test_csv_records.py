"""Records of CSV and TSV: Python's `csv` as the oracle, and the same records for any cut."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bert_tf.data.tables.formats.csv_records import (
    RecordFault,
    count_line_ends,
    find_records,
)
from bert_tf.data.tables.formats.record_stream import LongLine, RecordStream, find_delimiter

CELLS = st.text(st.characters(codec="utf-8"), max_size=5) | st.text('a",;\t\n\r é', max_size=5)


def found(content: bytes, *, has_quotes: bool = True, **values):
    data = np.frombuffer(content, np.uint8)
    delimiter = ord("," if has_quotes else "\t")
    return find_records(data, delimiter=delimiter, has_quotes=has_quotes, first_line=1, **values)


@given(st.lists(st.tuples(CELLS, CELLS), max_size=8), st.sampled_from(["\n", "\r\n", "\r"]))
def test_what_python_writes_is_read_back_at_its_lines(rows, line_end):
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\r\n", quoting=csv.QUOTE_ALL)
    lines, texts = [], []
    for row in rows:
        lines.append(1 + count_line_ends(np.frombuffer(stream.getvalue().encode(), np.uint8)))
        writer.writerow(row)
        stream.seek(stream.tell() - 2)
        stream.write(line_end)
        stream.truncate()
        texts.append(stream.getvalue())
    content = stream.getvalue().encode()
    records = found(content)
    assert (records.faults == RecordFault.SOUND).all()
    assert records.lines.tolist() == lines
    raws = [content[a:b] for a, b in zip(records.starts, records.stops, strict=True)]
    read = [next(csv.reader(io.StringIO(raw.decode(), newline=""), strict=True)) for raw in raws]
    assert read == [list(row) for row in rows]
    assert np.diff(records.offsets).tolist() == [2] * len(rows)


@pytest.mark.parametrize(
    ("content", "faults"),
    [
        (b'"a"b\n"c"\n', [RecordFault.TEXT_FOLLOWING_QUOTE, RecordFault.SOUND]),
        (b'"a\n"b",c\n', [RecordFault.NEVER_CLOSED, RecordFault.SOUND]),
        (b'"a\nb\n', [RecordFault.OPEN_AT_END, RecordFault.SOUND]),
        (b'x,"' + b"a\n" * 30 + b"b\n", [RecordFault.NEVER_CLOSED] + [RecordFault.SOUND] * 30),
        (b"x" * 51 + b"\nb\n", [RecordFault.LONG_RECORD, RecordFault.SOUND]),
        (b'"' + b"x" * 51 + b"\nb\n", [RecordFault.LONG_RECORD, RecordFault.SOUND]),
        ("é".encode() * 50 + b"\nb\n", [RecordFault.SOUND, RecordFault.SOUND]),
        (
            '"é\n'.encode() * 1 + "é".encode() * 46 + b'"\nb\n',
            [RecordFault.SOUND, RecordFault.SOUND],
        ),
    ],
)
def test_one_bad_record_does_not_take_others_with_it(content, faults):
    assert found(content, longest=50).faults.tolist() == faults


def test_blank_lines_are_none():
    assert found(b"\n \t\n,\n\r\n ").blank_lines == 4
    assert found(b" \t\n", has_quotes=False).lines.tolist() == [1]  # two cells
    assert found(b"\r\n \n", has_quotes=False).blank_lines == 2


BROKEN = st.text('ab",\n\r é', max_size=60)


@given(BROKEN, st.lists(st.integers(1, 9), min_size=1), st.booleans(), st.integers(3, 40))
@example('a\r\n"b', [2, 1], True, 40)
@example("\naaaa", [5], False, 3)
@example('"\n",aaaa,"\n"\nb', [9, 1], True, 6)
@example("a" * 50 + "\r\nb", [3], True, 40)
def test_a_stream_gives_the_records_of_the_whole(text, sizes, has_quotes, longest):
    content = text.encode()
    whole = found(content, has_quotes=has_quotes, longest=longest)
    expected = list(zip(whole.lines.tolist(), whole.faults.tolist(), strict=True))
    place = number = 0

    def read(_: int) -> bytes:
        nonlocal place, number
        part = content[place : place + sizes[number % len(sizes)]]
        place, number = place + len(part), number + 1
        return part

    stream = RecordStream(read, has_quotes=has_quotes, longest=longest)
    delimiter = "," if has_quotes else "\t"
    read_records = []
    for window in stream.windows(delimiter, most_records=2):
        if isinstance(window, LongLine):
            read_records.append((window.line, RecordFault.LONG_RECORD))
            continue
        _, records = window
        read_records += zip(records.lines.tolist(), records.faults.tolist(), strict=True)
    assert read_records == expected


@given(st.binary(max_size=30) | st.text("a\n\r", max_size=30).map(str.encode))
def test_line_ends_are_those_of_universal_newlines(content):
    text = io.StringIO(content.decode("latin-1"), newline=None).read()
    assert count_line_ends(np.frombuffer(content, np.uint8)) == text.count("\n")


@pytest.mark.parametrize(
    ("content", "has_header", "delimiter"),
    [
        (b"text\nx;y\n", True, ","),
        (b'"a;b;c",d\n', True, ","),
        (b"a;b,c;d\n", True, ";"),
        (b'"a\nb"\tc\n', True, "\t"),
        (b'1;"x, y"\n2;z\n3,4,5\n', False, ";"),
    ],
)
def test_the_delimiter_that_fits(content, has_header, delimiter):
    data = np.frombuffer(content, np.uint8)
    assert find_delimiter(data, has_header=has_header, longest=99, is_end=True) == delimiter
