"""The short form of `long_texts`: a text through the graph of every task."""

import pytest
from behavior.exported_models import KINDS, exported_kind
from behavior.forks import run_forked

# In a process of its own: in that of other tests TensorFlow may run, which no fork survives.
_PROGRAM = """
import sys
from pathlib import Path
from faults.long_texts import LENGTH, check_memory

assert check_memory(Path(sys.argv[1]), [sys.argv[2]], LENGTH)
"""
_MASKED = {"filler": "[MASK] "}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_long_text_takes_is_in_proportion_to_it(tmp_path_factory, kind):
    unit = _MASKED.get(kind, "the river runs north of it . ")
    done = run_forked(_PROGRAM, exported_kind(tmp_path_factory, kind), unit)
    assert done.returncode == 0, done.stderr
