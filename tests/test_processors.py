"""The tests of arithmetic once more, compiled as for older processors than this one.

Numba and oneDNN choose instructions by processor, and sums round differently in each; whether the
tests pass must not depend on the machine they run on.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bert_tf.base.processor import processor_flags

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
# Everything that Numba compiles is compiled anew, so these are the tests that compare numbers.
FUNCTIONS = (
    "tests/bert_tf/cpu/kernels/test_numbers.py",
    "tests/bert_tf/cpu/test_adamw.py::test_updates_are_those_of_keras",
)
ARITHMETIC = (
    *FUNCTIONS,
    "tests/bert_tf/cpu/kernels/test_graph.py::test_dropout_draws_what_xla_does",
    "tests/bert_tf/cpu/test_forward_kernels.py",
    "tests/bert_tf/training/test_step_huggingface.py",
)


@pytest.mark.parametrize(
    ("flag", "numba_name", "onednn_name", "files"),
    [
        ("avx2", "haswell", "AVX2", ARITHMETIC),
        ("avx512f", "skylake-avx512", "AVX512_CORE", FUNCTIONS),
    ],
    ids=["AVX2", "AVX-512 without bf16"],
)
def test_arithmetic_as_on_an_older_processor(flag, numba_name, onednn_name, files):
    if flag not in processor_flags():
        pytest.skip(f"this processor lacks {flag}")
    older = {
        **os.environ,
        "NUMBA_CPU_NAME": numba_name,
        "NUMBA_CPU_FEATURES": "",
        "ONEDNN_MAX_CPU_ISA": onednn_name,
    }
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
    command += ["--hypothesis-profile", "quick"]
    # Whole steps are those of test_step_huggingface.py; gradients in two parts are added up first.
    command += ["-k", "not pretraining_step and not two and not False-1"]
    run = subprocess.run(
        [*command, *files], cwd=ROOT, env=older, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
    assert run.stdout.count(".") >= 8, run.stdout
