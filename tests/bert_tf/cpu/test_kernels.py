"""The same bits whether a process compiles kernels or loads them."""

import importlib
import os
import pkgutil
import subprocess
import sys

import pytest
from numba.core.dispatcher import Dispatcher

from bert_tf import cpu
from bert_tf.cpu.kernels import sum_norm

# They compute with whole numbers, exact in any order.
EXACT = {"keep_elements", "_draw", "compute_piece"}
MODULES = [found.name for found in pkgutil.walk_packages(cpu.__path__, "bert_tf.cpu.")]


def functions_of(module):
    found = vars(importlib.import_module(module)).values()
    return [each for each in found if isinstance(each, Dispatcher)]


@pytest.mark.parametrize("module", MODULES)
def test_functions_are_inlined_where_they_are_called(module):
    """Else the linker takes one copy of several that LLVM optimized differently."""
    for function in functions_of(module):
        options = function.targetoptions
        is_inlined = options.get("forceinline") or options.get("inline") == "always"
        assert is_inlined or function.__name__ in EXACT, function


COMPILED = """
import numpy as np
from bert_tf.cpu.kernels.sum_norm import sum_norm_entry
for line in sum_norm_entry(np.float32).inspect_llvm().splitlines():
    if line.startswith("define"):
        print(line)
"""


@pytest.mark.slow
def test_an_entry_contains_no_function_that_another_could_replace(tmp_path):
    assert "sum_norm" in {each.__name__ for each in functions_of(sum_norm.__name__)}
    done = subprocess.run(
        [sys.executable, "-c", COMPILED],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},  # nothing is compiled yet
        capture_output=True,
        text=True,
        check=True,
    )
    ours = [line for line in done.stdout.splitlines() if "bert_tf" in line]
    assert ours
    assert all("sum_norm_entry" in line for line in ours), ours
