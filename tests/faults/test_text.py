"""The short form of `text`: some texts of each kind through tokenizers, readers and jobs."""

import json
from random import Random

import pytest
from behavior.forks import run_forked
from faults.texts import broken_text, invented_text, long_line

TEXTS = 20
# In a process of its own: in that of other tests TensorFlow may run, which no fork survives.
_PROGRAM = f"""
import json, sys, tempfile
from pathlib import Path
from random import Random
from faults.text import check_texts, make_models

with tempfile.TemporaryDirectory() as name:
    make_models(Path(name), ["answerer", "comparer", "tagger"])
    for check in sys.argv[1:]:
        counts = check_texts(Path(name), check, Random(check), {TEXTS})
        print(json.dumps(dict(counts)), flush=True)
"""
_CHECKS = ("answers", "corpora", "questions", "summaries", "tags", "tokenizers", "vectors")


@pytest.mark.slow
def test_no_text_is_cut_or_shifted_or_lost():
    done = run_forked(_PROGRAM, *_CHECKS)
    assert done.returncode == 0, done.stderr
    counts = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(counts) == len(_CHECKS)
    assert all(any(each.values()) for each in counts)


def test_texts_are_seeded_and_of_every_plane():
    made = [invented_text(Random(number)) for number in range(2000)]
    assert made[:9] == [invented_text(Random(number)) for number in range(9)]
    codes = set(map(ord, "".join(made)))
    assert {code >> 16 for code in codes} == set(range(17))
    assert {0, 0x85, 0x2028, 0x202E, 0xFEFF, 0xFFFE, 0x10FFFF} <= codes
    assert not codes & set(range(0xD800, 0xE000))


def test_broken_texts_cannot_be_encoded():
    for number in range(50):
        with pytest.raises(UnicodeEncodeError):
            broken_text(Random(number)).encode()


def test_long_lines_are_one_line():
    line = long_line(Random(1))
    assert "\n" not in line and 9 << 20 < len(line.encode()) < 11 << 20
