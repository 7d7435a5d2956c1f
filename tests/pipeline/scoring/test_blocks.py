"""The same file gives the same rows to `vocab`, `finetune` and `score`, and the same rejects."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from behavior.readers import COMPRESS, Rows, check_same_rows, read_labeled
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pipeline.scoring.blocks import cut_table, read_block

LONG = "long " * 20_000
CSV = (
    b"\xef\xbb\xbfid,text\r\n"
    b"1,plain\r\n"
    b'2,"quotes ""in"" it"\r\n'
    b'3,"a, b; c\td"\r\n'
    b'4,"two\r\nlines"\r\n'
    b" \r\n"
    b"5,caf\xe9\r\n"
    b"6\r\n"
    b"7,a,b\r\n" + "8,\U0001f600\r\n".encode() + f"9,{LONG}\r\n".encode() + b"10, \r\n"
    b'11,"unclosed\r\n'
    b'12,"closed" early\r\n'
    b"13,last"
)
TSV = (
    b"id\ttext\n"
    b'1\t"quotes" stay\r\n'
    b'2\t"open, ; too\n'
    b"\n"
    b"3\tcaf\xe9\n"
    b"4\n"
    b"5\ta\tb\n"
    b"\t\n" + "6\t\U0001f600\ra\n".encode() + f"7\t{LONG}\n".encode() + b"8\tlast"
)
JSONL = (
    b'\xef\xbb\xbf{"text": "plain"}\r\n'
    b'{"text": "two\\nlines, \\"quoted\\" \\ud83d\\ude00"}\n'
    b" \t\r\n"
    b'{"text": "caf\xe9"}\n'
    b'{"id": 3}\n'
    b'{"text": "unclosed}\n'
    b'{"text": null}\n'
    b'{"text": 17}\n'
    b'{"text": "\\ud800"}\n'
    b'{"text": "", "id": 1}\n'
    b'{"text": "a", "text": "b"}\n'
    b"[1]\n" + json.dumps({"text": LONG}).encode() + b'\n{"text": "last"}'
)
TEXTS = [b"plain", b"two\nlines", b"caf\xe9", None, b"", "\U0001f600".encode(), LONG.encode()]
EMPTY = "column 'text' is empty"
EXPECTED: dict[str, Rows] = {
    "a.csv": (
        {
            2: "plain",
            3: 'quotes "in" it',
            4: "a, b; c\td",
            5: "two\r\nlines",
            11: "\U0001f600",
            12: LONG,
            16: "last",
        },
        [
            (8, "invalid UTF-8"),
            (9, "too few cells"),
            (10, "too many cells"),
            (13, EMPTY),
            (14, "quote is not closed"),
            (15, "text after a closing quote"),
        ],
    ),
    "a.tsv": (
        {
            2: '"quotes" stay',
            3: '"open, ; too',
            9: "\U0001f600\ra",
            10: LONG,
            11: "last",
        },
        [(5, "invalid UTF-8"), (6, "too few cells"), (7, "too many cells"), (8, EMPTY)],
    ),
    "a.jsonl": (
        {1: "plain", 2: 'two\nlines, "quoted" \U0001f600', 13: LONG, 14: "last"},
        [
            (4, "invalid UTF-8"),
            (5, "column 'text' is missing"),
            (6, "not JSON"),
            (7, EMPTY),
            (8, "column 'text' is not text"),
            (9, "lone surrogate"),
            (10, EMPTY),
            (11, "duplicate key"),
            (12, "not a JSON object"),
        ],
    ),
    "a.parquet": (
        {1: "plain", 2: "two\nlines", 6: "\U0001f600", 7: LONG},
        [(3, "invalid UTF-8"), (4, EMPTY), (5, EMPTY)],
    ),
}


def parquet_bytes() -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.table({"text": pa.array(TEXTS, pa.binary())}), stream, row_group_size=3)
    return stream.getvalue()


CONTENTS = {"a.csv": CSV, "a.tsv": TSV, "a.jsonl": JSONL, "a.parquet": parquet_bytes()}


@pytest.fixture
def read_scored(make_plan):
    """Texts by line and rejects as `score` reads them."""

    def read(path: Path) -> Rows:
        plan = make_plan(path.name, output="out.csv")
        texts, rejects = {}, []
        for reference in cut_table(plan.tables[0], plan):
            block = read_block(reference, plan)
            texts.update(zip(block.lines, block.texts["text"], strict=True))
            rejects += [(reject.line, reject.reason) for reject in block.rejects]
        return texts, rejects

    return read


@pytest.mark.parametrize(
    ("name", "ending"),
    [
        (name, ending)
        for name in CONTENTS
        for ending in COMPRESS
        if name != "a.parquet" or not ending
    ],
)
@pytest.mark.parametrize("block_bytes", [100, 1 << 20])
def test_difficult_cells_are_the_same_for_all_readers(
    tmp_path, read_scored, name, ending, block_bytes
):
    path = tmp_path / f"{name}{ending}"
    path.write_bytes(COMPRESS[ending](CONTENTS[name]))
    for read_rows in (read_labeled, read_scored):
        assert check_same_rows(path, read_rows, block_bytes) == EXPECTED[name]


def test_other_encodings_have_the_rows_of_utf8(tmp_path, read_scored):
    text = 'id,text\r\n1,"caf\xe9\r\n"\r\n2,b,c\r\n3,last\r\n'
    (tmp_path / "a.csv").write_bytes(text.encode("utf-16"))
    (tmp_path / "b.csv").write_bytes(text.encode("latin-1"))
    expected = ({2: "caf\xe9\r\n", 5: "last"}, [(4, "too many cells")])
    assert check_same_rows(tmp_path / "a.csv", read_scored) == expected
    assert read_labeled(tmp_path / "a.csv") == expected
    assert read_labeled(tmp_path / "b.csv", encoding="latin-1") == expected


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    body=st.text('ab",;\t\n\r \xe9', max_size=60).map(str.encode)
    | st.lists(st.sampled_from([b'1,"x\n2"\n', b"1,\xff\n", b"2,b\r", b"3\r\n", b'4,"\n'])).map(
        b"".join
    ),
    name=st.sampled_from(["a.csv", "a.tsv"]),
    block_bytes=st.integers(1, 40),
)
@example(body=b'1,"a\r', name="a.csv", block_bytes=3)
def test_random_tables_are_the_same_for_all_readers(tmp_path, read_scored, body, name, block_bytes):
    header = b"id,text\n" if name == "a.csv" else b"id\ttext\n"
    (tmp_path / name).write_bytes(header + body)
    for read_rows in (read_labeled, read_scored):
        check_same_rows(tmp_path / name, read_rows, block_bytes)
