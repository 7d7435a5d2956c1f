"""Files of rows: written, run through a command in this process, and read again."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random
from typing import Any

from faults.job_forks import Ended
from faults.texts import broken_text

Row = dict[str, Any]


def run_command(*words: str) -> Ended:
    """Run a command in this process."""
    from pipeline.cli.main import main

    code = 0
    start = time.monotonic()
    out = io.StringIO()
    err = io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main(list(words))
        except SystemExit as end:
            code = int(end.code or 0)
    return Ended(code, out.getvalue(), err.getvalue(), time.monotonic() - start, 0)


def write_rows(path: Path, rows: Sequence[Row], random: Random) -> None:
    """Write rows as CSV or JSON lines, which may hold bytes that are not UTF-8."""
    if path.suffix == ".csv":
        with path.open("w", encoding="utf-8", errors="surrogatepass", newline="") as stream:
            table = csv.writer(stream)
            table.writerow(rows[0])
            table.writerows(row.values() for row in rows)
    else:
        lines = (json.dumps(row, ensure_ascii=random.random() < 0.5) + "\n" for row in rows)
        path.write_text("".join(lines), encoding="utf-8", errors="surrogatepass", newline="")


def read_rows(path: Path) -> list[Row]:
    content = path.read_bytes().decode()
    if path.suffix == ".csv":
        csv.field_size_limit(1 << 30)
        return list(csv.DictReader(io.StringIO(content, newline="")))
    return [json.loads(line) for line in content.split("\n") if line]


def rejected_rows(path: Path) -> list[Row]:
    beside = path.with_name(f"{path.name}.rejects.jsonl")
    rejects = path / "rejects.jsonl" if path.is_dir() else beside
    return read_rows(rejects) if rejects.exists() else []


def is_broken(row: Row) -> bool:
    return any(
        isinstance(cell, str) and re.search("[\ud800-\udfff]", cell) for cell in row.values()
    )


def invented_rows(random: Random, count: int, **make: Callable[[Random], Any]) -> list[Row]:
    """Rows of a column for each function; in some a text is broken."""
    rows = []
    for number in range(count):
        row: Row = {"number": f"n{number}"}
        row.update((name, function(random)) for name, function in make.items())
        if random.random() < 0.05:
            row[random.choice(list(make))] = broken_text(random)
        rows.append(row)
    return rows


def scored_rows(
    command: Sequence[str], work: Path, rows: Sequence[Row], random: Random, columns: Iterable[str]
) -> tuple[list[Row], Counter[str]]:
    """Rows that a command adds columns to; all others it must have rejected with a reason."""
    source = work / f"rows{random.choice(('.csv', '.jsonl'))}"
    output = work / f"scored{random.choice(('.csv', '.jsonl'))}"
    write_rows(source, rows, random)
    ended = run_command(*command, "--input", str(source), "--output", str(output), "--workers", "1")
    if ended.code:
        return [], Counter({f"refused: {file_reason(ended)}": len(rows)})
    found, rejects = read_rows(output), rejected_rows(output)
    assert len(found) + len(rejects) == len(rows), f"{len(found)} + {len(rejects)}: {ended.stderr}"
    given = {row["number"]: row for row in rows}
    for row in found:
        for name, cell in given[row["number"]].items():
            assert row[name] == cell, f"{name}: {cell!a} became {row[name]!a}"
    numbers = {row["number"] for row in found}
    for number, row in given.items():
        assert (number in numbers) != is_broken(row), f"{row!a}: {rejects}"
    assert [row["number"] for row in found] == sorted(numbers, key=lambda name: int(name[1:]))
    if output.suffix == ".csv":
        for row in found:
            row.update((name, json.loads(row[name])) for name in columns)
    return found, Counter({"held": len(found), "rejected": len(rejects)})


def file_reason(ended: Ended) -> str:
    """Why a whole file is refused: only for its control characters, or as it has no usable row."""
    line = ended.says_one_line()
    for reason in ("control characters", "NUL characters", "can be used", "without a byte-order"):
        if reason in line:
            return reason
    raise AssertionError(line)
