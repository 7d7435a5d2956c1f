"""Benchmarks are run by hand, seldom: what they import has to be there all the same."""

import json
from pathlib import Path

import pytest
from behavior.forks import run_forked

pytestmark = pytest.mark.slow  # a process that imports all there is

ROOT = Path(__file__).parents[2]
# The other sides of the comparisons, in environments of their own. A script of theirs cannot be
# imported further than to them; mypy looks at the rest.
PEERS = {"datasets", "jax", "seqeval", "torch", "transformers"}


def test_every_benchmark_can_be_imported_but_for_peers_that_are_not_installed():
    script = Path(__file__).with_name("import_all.py")
    found = run_forked(script, ROOT / "benchmarks", env={"PYTHONPATH": str(ROOT)})
    assert found.returncode == 0, found.stderr
    missing = json.loads(found.stdout.splitlines()[-1])
    assert set(missing.values()) <= PEERS, missing
