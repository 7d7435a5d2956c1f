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
ADAMW = "tests/bert_tf/cpu/test_adamw.py"
# Everything that Numba compiles is compiled anew, so each kernel is looked at once. How rows are
# divided among workers (kernels/test_workers.py) depends on no instruction.
FUNCTIONS = (
    "tests/bert_tf/cpu/kernels/test_numbers.py",
    f"{ADAMW}::test_updates_are_those_of_keras[one-0.0-1]",
    f"{ADAMW}::test_updates_are_those_of_keras[one-0.1-3]",
    f"{ADAMW}::test_updates_are_those_of_keras[two-0.1-1]",
    f"{ADAMW}::test_a_table_of_which_few_rows_have_gradients_is_updated_as_from_a_gradient_of_all"
    "[0.1-1]",
    f"{ADAMW}::test_the_norm_of_parts_is_that_of_their_sum[one]",
    f"{ADAMW}::test_the_norm_of_parts_is_that_of_their_sum[two]",
)
ARITHMETIC = (
    *FUNCTIONS,
    "tests/bert_tf/cpu/kernels/test_graph.py::test_dropout_draws_what_xla_does",
    "tests/bert_tf/cpu/test_forward_kernels.py",
    "tests/bert_tf/training/test_step_huggingface.py::"
    "test_losses_and_gradient_norms_are_those_of_the_trainer[True-2]",
)
# Whole steps are those of test_step_huggingface.py.
LEFT_OUT = "tests/bert_tf/cpu/test_forward_kernels.py::test_a_pretraining_step"


@pytest.mark.parametrize(
    ("flag", "numba_name", "onednn_name", "files"),
    [
        pytest.param("avx2", "haswell", "AVX2", ARITHMETIC, id="AVX2"),
        pytest.param(
            "avx512f",
            "skylake-avx512",
            "AVX512_CORE",
            FUNCTIONS,
            id="AVX-512 without bf16",
            marks=pytest.mark.long,
        ),
    ],
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
    command += ["--hypothesis-profile", "quick", "-rA", "--deselect", LEFT_OUT]
    run = subprocess.run(
        [*command, *files], cwd=ROOT, env=older, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
    assert [name for name in files if f"PASSED {name}" not in run.stdout] == [], run.stdout
