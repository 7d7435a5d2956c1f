"""Compiled functions: a change in any file that their code comes from is noticed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bert_tf.base import compiled

pytestmark = pytest.mark.slow  # processes that compile

CALLED = """
from bert_tf.base.compiled import numba
@numba.njit(cache=True)
def called(number):
    return number + {}
"""
CALLER = """
from bert_tf.base.compiled import numba
from pipeline.called import called
from pipeline import constants
@numba.njit(cache=True)
def caller(number):
    return called(number) * constants.FACTOR
"""
REPORT = """
from pipeline.caller import caller
print(caller(2), sum(caller.stats.cache_hits.values()))
"""


def test_cached_functions_notice_changes_of_the_functions_and_constants_they_use(tmp_path):
    for package in ("bert_tf/base", "pipeline"):
        (tmp_path / package).mkdir(parents=True)
    for package in ("bert_tf", "bert_tf/base", "pipeline"):
        (tmp_path / package / "__init__.py").touch()
    own = tmp_path / "bert_tf" / "base" / "compiled.py"
    own.write_text(Path(compiled.__file__).read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "pipeline" / "caller.py").write_text(CALLER, encoding="utf-8")

    def answers(*, addend, factor):
        """Return the result of the caller, and how many of its versions came from the cache."""
        called = tmp_path / "pipeline" / "called.py"
        called.write_text(CALLED.format(addend), encoding="utf-8")
        constants = tmp_path / "pipeline" / "constants.py"
        constants.write_text(f"FACTOR = {factor}\n", encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
        environment.pop("NUMBA_CACHE_DIR", None)
        done = subprocess.run(
            [sys.executable, "-c", REPORT],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            check=True,
        )
        return [int(word) for word in done.stdout.split()]

    assert answers(addend=1, factor=10) == [30, 0]
    assert answers(addend=1, factor=10) == [30, 1], "nothing has changed"
    assert answers(addend=5, factor=10) == [70, 0]
    assert answers(addend=5, factor=100) == [700, 0]
