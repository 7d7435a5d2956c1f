"""False alarms of the detectors of reading faults, on files that are known to be sound.

    python benchmarks/false_alarms.py PLAN.json [--rows 200]

PLAN.json lists the ways in which files are meant to be read:

    [{"task": "tagging", "train": "data/dev.conll"},
     {"task": "classification", "train": "data/train.tsv", "options": {"label_column": "topic"}},
     {"corpus": "data/news.txt.gz"}]

Every file is cut into files of `--rows` rows (sentences of CoNLL, lines of text), each of which is
read as if it were all there is. Prints for each detector how many of these it found fault with, and
the first message; a detector that is not listed found nothing. What is refused while it is read
counts, too, as `reading`.
"""

from __future__ import annotations

import argparse
import collections
import csv
import dataclasses
import gzip
import io
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bert_tf.base.console import Console
from bert_tf.base.errors import BertPipelineError
from bert_tf.config.sections import PreprocessConfig
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.formats.conll import is_conll
from bert_tf.tasks.base.review import rows_judged
from bert_tf.tasks.registry import finetune_config, task_class
from pipeline.beam.files import match_files
from pipeline.report.corpus.language import understand_corpus


@dataclasses.dataclass
class Alarms:
    """What was found in the parts of some files."""

    parts: int = 0
    found: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    first: dict[str, str] = dataclasses.field(default_factory=dict)

    def add(self, findings: dict[str, str]) -> None:
        """Count a part with its findings, text by detector."""
        self.parts += 1
        self.found.update(findings.keys())
        self.first = {**findings, **self.first}

    def lines(self) -> Iterator[str]:
        for name, count in self.found.most_common():
            yield f"  {count / self.parts:7.2%}  {count:5,}  {name}: {self.first[name]}"


def parts_of(path: Path, rows: int) -> Iterator[bytes]:
    """Cut a file into parts of `rows` rows, each with the header of a table."""
    if path.suffix == ".gz":
        yield from parts_of_corpus(path, rows)
        return
    data = path.read_bytes()
    if path.suffix == ".json":
        articles = json.loads(data)["data"]
        for article in articles:
            yield json.dumps({"data": [article]}).encode()
        return
    separator, header = b"\n", []
    if is_conll(path):
        separator, pieces = b"\n\n", re.split(rb"\n\s*\n", data.strip())
    else:
        first_line, *pieces = data.replace(b"\r\n", b"\n").rstrip(b"\n").split(b"\n")
        header = [first_line]
    for first in range(0, len(pieces), rows):
        yield separator.join([*header, *pieces[first : first + rows]]) + b"\n"


def parts_of_corpus(path: Path, rows: int) -> Iterator[bytes]:
    """Cut a corpus into parts of whole documents with about `rows` lines."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
        text = stream.read()
    if ".csv" in path.name:
        csv.field_size_limit(1 << 30)
        header, *documents = csv.reader(io.StringIO(text))
        for first in range(0, len(documents), max(rows // 20, 1)):
            table = io.StringIO()
            csv.writer(table).writerows([header, *documents[first : first + max(rows // 20, 1)]])
            yield table.getvalue().encode()
        return
    separator = "\n\n" if ".txt" in path.name else "\n"
    part: list[str] = []
    lines = 0
    for document in text.strip().split(separator):
        part.append(document)
        lines += document.count("\n") + 1
        if lines >= rows:
            yield separator.join(part).encode() + b"\n"
            part.clear()
            lines = 0
    if part:
        yield separator.join(part).encode() + b"\n"


def corpus_findings(path: Path, options: dict[str, Any]) -> dict[str, str]:
    """Read a file as a corpus, and return the findings of detectors by their names."""
    config = PreprocessConfig(input=(str(path),), vocab="v", output="o", **options)
    return dict(understand_corpus(config, match_files([str(path)])).findings)


def findings_of(task: str, path: Path, options: dict[str, Any]) -> dict[str, str]:
    """Read a file as training rows, and return the findings of detectors by their names."""
    required = {"task": task, "train": str(path), "init": "none", "output": "none"}
    config = finetune_config({**required, **options})
    try:
        of_task, source = task_class(task).from_training(config, Console(io.StringIO()))
    except BertPipelineError as error:
        return {"reading": str(error)}
    _, found = rows_judged(of_task, source, dialect=TableDialect.of(config))
    return {each.detector: each.text for each in found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("plan", type=Path)
    parser.add_argument("--rows", type=int, default=200)
    arguments = parser.parse_args()
    total = Alarms()
    with tempfile.TemporaryDirectory() as folder:
        for way in json.loads(arguments.plan.read_text()):
            source = Path(way.get("train") or way["corpus"])
            part, alarms = Path(folder) / source.name.removesuffix(".gz"), Alarms()
            options = way.get("options", {})
            for data in parts_of(source, arguments.rows):
                part.write_bytes(data)
                if "corpus" in way:
                    found = corpus_findings(part, options)
                else:
                    found = findings_of(way["task"], part, options)
                alarms.add(found)
                total.add(found)
            print(f"{way.get('task', 'corpus')}: {source}: {alarms.parts:,} parts", flush=True)
            sys.stdout.writelines(f"{line}\n" for line in alarms.lines())
    print(f"all: {total.parts:,} parts")
    sys.stdout.writelines(f"{line}\n" for line in total.lines())


if __name__ == "__main__":
    main()
