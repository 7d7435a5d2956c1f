"""The short form of `fuzz`: some inputs of every format; found inputs that ended otherwise."""

from __future__ import annotations

from random import Random

import pytest
from behavior.forks import run_forked
from behavior.timing import superlinear_growth
from faults.children import run_inputs
from faults.mutation import mutated

from bert_tf.base.errors import InputError, UsageError
from bert_tf.config.plain_yaml import read_yaml_lines
from pipeline.embedding.vectors import read_vectors

INPUTS = 15
# In a process of its own: in that of other tests TensorFlow may run, which no fork survives.
_PROGRAM = f"""
import sys
from pathlib import Path
from random import Random
from faults.fuzzing import fuzz_target, targets

folder = Path(sys.argv[1])
found = targets(folder)
for name in found:
    outcomes = fuzz_target(folder, name, found, Random(name), most={INPUTS})
    assert sum(outcomes.values()) == min({INPUTS}, found[name].inputs), (name, outcomes)
"""


@pytest.mark.slow
def test_no_invented_input_ends_otherwise_than_with_an_error(tmp_path):
    done = run_forked(_PROGRAM, tmp_path)
    assert done.returncode == 0, done.stderr


def fails(number):
    raise KeyError(number)


def crashes(number):
    import ctypes

    ctypes.string_at(0)


def hoards(number):
    return len(bytearray(9 << 30))


@pytest.mark.parametrize(
    ("take", "said"), [(fails, "KeyError: 0"), (crashes, "SIGSEGV"), (hoards, "MemoryError")]
)
def test_other_ends_are_failures(take, said):
    with pytest.raises(AssertionError, match=f"(?s)input 0: .*{said}"):
        run_inputs(3, take, lambda: None)


def test_mutations_are_seeded_and_differ():
    made = [mutated(Random(number), [b'{"a": 10}']) for number in range(300)]
    assert made == [mutated(Random(number), [b'{"a": 10}']) for number in range(300)]
    assert len(set(made)) > 250


@pytest.mark.parametrize("opening", ["[", "{", "[a, ", "- ", "? "])
def test_deep_yaml_is_refused_at_once(tmp_path, opening):
    path = tmp_path / "a.yaml"

    def message(text):
        path.write_text(text)
        with pytest.raises(UsageError) as refused:
            list(read_yaml_lines(str(path)))
        return str(refused.value)

    assert "it is nested too deeply" in message(opening * 20_000)
    assert superlinear_growth(message, opening.__mul__, size=20_000) is None


def test_vectors_with_a_damaged_header_are_an_input_error(tmp_path):
    header = b"{'descr': '<f4', 'shape': (2, "
    path = tmp_path / "a.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(InputError, match="a.npy: cannot be read"):
        read_vectors(str(path), text_column=None)
