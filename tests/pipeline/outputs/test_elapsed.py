"""Seconds add up over the runs of a job, also over those that were killed."""

import signal
import subprocess
import sys
import time

import pytest

from pipeline.outputs.elapsed import adding_up_seconds


def test_one_run_has_one_time(tmp_path):
    with adding_up_seconds(tmp_path / "seconds", anew=False) as seconds:
        time.sleep(0.02)
    assert list(seconds.timings()) == ["total"]
    assert 0.02 <= seconds.timings()["total"] < 5
    assert not list(tmp_path.iterdir())


def test_interrupted_runs_add_up(tmp_path):
    path = tmp_path / "seconds"
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt), adding_up_seconds(path, anew=False):
            time.sleep(0.05)
            raise KeyboardInterrupt
    with adding_up_seconds(path, anew=False) as seconds:
        time.sleep(0.05)
    timings = seconds.timings()
    assert 0.05 <= timings["last_part"] < timings["total"]
    assert timings["total"] >= 0.15
    assert not list(tmp_path.iterdir())


def test_a_run_that_starts_over_has_its_own_time(tmp_path):
    path = tmp_path / "seconds"
    path.write_text("1000")
    with pytest.raises(KeyboardInterrupt), adding_up_seconds(path, anew=True) as seconds:
        raise KeyboardInterrupt
    assert list(seconds.timings()) == ["total"]
    assert float(path.read_text()) < 5


def test_a_killed_run_counts_to_its_last_seconds(tmp_path):
    path = tmp_path / "seconds"
    program = f"""
import os, signal, time
from pipeline.outputs import elapsed
from pathlib import Path
elapsed._SECONDS = 0.01
with elapsed.adding_up_seconds(Path({str(path)!r}), anew=False):
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == -signal.SIGKILL
    with adding_up_seconds(path, anew=False) as seconds:
        assert seconds.earlier > 0.1
