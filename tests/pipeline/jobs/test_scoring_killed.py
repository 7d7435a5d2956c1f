"""A job that is killed at any moment and run again writes what it would have written."""

import json
from pathlib import Path

import pytest
from behavior.forks import run_forked

pytestmark = pytest.mark.slow  # runs some thirty jobs in processes of their own

SCRIPT = Path(__file__).parents[1] / "killed_scoring.py"


def test_no_kill_changes_the_outputs_or_scores_a_finished_block_again(tmp_path):
    done = run_forked(SCRIPT, tmp_path)
    assert done.returncode == 0, done.stderr
    *killed, whole = map(json.loads, done.stdout.splitlines())
    assert not whole["killed"] and whole["predicted"] == []
    assert len(killed) > 10
    assert whole["left"]["scored.csv"].splitlines()[1:] == [
        f"{n},{text},fine,0.75" for n, text in enumerate("abc")
    ] + ["4,e,fine,0.75"]
    for report in killed:
        assert report["killed"]
        assert (report["code"], report["folders"]) == (0, []), done.stderr
        assert report["left"] == whole["left"]
        assert len(report["predicted"]) == 0 or (
            len(report["predicted"]) + sum(report["finished"]) == 4
        )
    assert {tuple(report["finished"]) for report in killed} >= {(), (3,), (3, 1)}
