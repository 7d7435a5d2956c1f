"""The commands, one after the other, on this machine: what is on stderr is ours."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
WORDS = [first + second for first in "bcdfghjklm" for second in "aeiou"]


@pytest.fixture
def data(tmp_path) -> Path:
    """A corpus, labeled rows and questions."""
    source = random.Random(0)

    def words(count: int) -> str:
        return " ".join(source.choices(WORDS, k=count))

    documents = ["\n".join(words(8) + " ." for _ in range(8)) for _ in range(60)]
    (tmp_path / "corpus.txt").write_text("\n\n".join(documents))
    rows = [f"{words(6)},{label}" for label in "abab" * 4]
    (tmp_path / "rows.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    paragraphs = []
    for number in range(8):
        context = words(12)
        answer = context.split()[3]
        start = context.index(answer)
        question = {
            "id": str(number),
            "question": "ba be bi",
            "answers": [{"text": answer, "answer_start": start}],
        }
        paragraphs.append({"context": context, "qas": [question]})
    squad = {"version": "1.1", "data": [{"title": "t", "paragraphs": paragraphs}]}
    (tmp_path / "qa.json").write_text(json.dumps(squad))
    return tmp_path


COMMANDS = """\
vocab --input corpus.txt --output vocab.txt --vocab-size 80
preprocess --input corpus.txt --vocab vocab.txt --output data --max-seq-length 32
preprocess --input corpus.txt --vocab vocab.txt --output data2 --max-seq-length 32 --workers 2
train --data data --output run --size tiny --steps 2 --batch-size 4
finetune classification --train rows.csv --init run --output labels --epochs 1 --max-seq-length 16
finetune qa --train qa.json --init run --output answers --epochs 1 --max-seq-length 96
evaluate --model labels --data rows.csv --output measures
export --run labels --output model
score --model model --input rows.csv --output scored.csv
import-weights model --output imported
inspect data
doctor
"""
# Console marks its lines, so that every other line is somebody else's.
RUN_ALL = """
import sys
from bert_tf.base.console import Console
from pipeline.cli.main import main

def marking(method):
    def marked(self, line):
        method(self, "\\n".join("own: " + part for part in line.split("\\n")))
    return marked

for name in ("say", "progress", "end_progress"):
    setattr(Console, name, marking(getattr(Console, name)))
for command in sys.argv[1].splitlines():
    try:
        main(command.split())
    except SystemExit as done:
        if done.code:
            sys.exit(f"{command}: ended with {done.code}")
"""


def test_every_command_writes_our_own_lines_alone(data):
    done = subprocess.run(
        [sys.executable, "-c", RUN_ALL, COMMANDS],
        cwd=data,
        # Without what the tests' own environment hides.
        env={
            **{name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"},
            "PYTHONPATH": str(ROOT),
        },
        capture_output=True,
        text=True,
    )
    foreign = [line for line in done.stderr.splitlines() if not line.startswith("own: ")]
    assert foreign == []
    assert done.returncode == 0
    assert done.stderr.count("\n") > 30
