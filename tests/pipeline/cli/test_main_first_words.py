"""The modules that a command has imported when it prints its first line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
# Runs a command on a terminal that notes what is imported when the first text is written to it.
CODE = """
import io, json, sys
from pipeline.cli.main import bert_pipeline

class Terminal(io.StringIO):
    first = heavy = None
    def isatty(self):
        return True
    def write(self, text):
        if isinstance(text, bytes):  # click asks whether the stream takes them
            raise TypeError
        if text and Terminal.first is None:
            note(text)
            raise KeyboardInterrupt

def note(text):
    Terminal.first = text
    Terminal.heavy = sorted({"tensorflow", "keras", "apache_beam"} & set(sys.modules))

out, sys.stdout, sys.stderr = sys.stdout, Terminal(), Terminal()
try:
    bert_pipeline.main(sys.argv[1:], standalone_mode=False)
except BaseException as error:
    if Terminal.first is None:
        note(str(error))
print(json.dumps([Terminal.first, Terminal.heavy]), file=out, flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["vocab", "--input", "a.txt", "--output", "v.txt"], "vocab: loading libraries"),
        (["train", "--data", "d", "--output", "r", "--size", "tiny"], "train: loading libraries"),
        (["score", "--model", "m", "--input", "a.csv", "--output", "b.csv"], "score: loading"),
        (["init", "classification", "--from", "a.csv", "--init", "m"], "a.csv: looking at"),
        (["try", "m"], "try: loading libraries"),
        (["inspect", "vocab.txt"], "vocab.txt: "),
        (["doctor"], "packages: "),
    ],
)
def test_nothing_heavy_is_imported_before_the_first_words(arguments, words, tmp_path):
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n")
    for folder in ("d", "m"):
        (tmp_path / folder).mkdir()
    (tmp_path / "m" / "saved_model.pb").touch()
    for name in ("a.txt", "a.csv"):
        (tmp_path / name).write_text("text,label\na,b\n")
    done = subprocess.run(
        [sys.executable, "-c", CODE, *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr
    first, heavy = json.loads(done.stdout)
    assert words in first
    assert heavy == []
