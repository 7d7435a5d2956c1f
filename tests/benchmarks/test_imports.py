"""Benchmarks are run by hand, seldom; their imports must exist all the same."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # a process that imports all there is

ROOT = Path(__file__).parents[2]
# The other sides of the comparisons, in environments of their own. A script of theirs cannot be
# imported further than to them; mypy looks at the rest.
PEERS = {"datasets", "jax", "seqeval", "torch", "transformers"}


def test_every_benchmark_can_be_imported_but_for_peers_that_are_not_installed():
    found = subprocess.run(
        [sys.executable, Path(__file__).with_name("import_all.py"), ROOT / "benchmarks"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stderr
    missing = json.loads(found.stdout.splitlines()[-1])
    assert set(missing.values()) <= PEERS, missing
