"""Seconds add up over the runs of a job, also over those that were killed."""

import io
import signal
import subprocess
import sys
import time

import pytest

from bert_tf.base.console import Console
from bert_tf.base.json_files import read_sealed
from pipeline.outputs.elapsed import adding_up_seconds, keep_seconds

ROUNDING = 0.001  # seconds


def test_one_run_has_one_time(tmp_path):
    began = time.monotonic()
    with adding_up_seconds(tmp_path / "seconds", Console(io.StringIO()), anew=False) as seconds:
        time.sleep(0.02)
    timings = seconds.timings()
    assert list(timings) == ["total"]
    assert 0.02 <= timings["total"] <= time.monotonic() - began + ROUNDING
    assert not list(tmp_path.iterdir())


def test_interrupted_runs_add_up(tmp_path):
    path = tmp_path / "seconds"
    for _ in range(2):
        with (
            pytest.raises(KeyboardInterrupt),
            adding_up_seconds(path, Console(io.StringIO()), anew=False),
        ):
            time.sleep(0.05)
            raise KeyboardInterrupt
    with adding_up_seconds(path, Console(io.StringIO()), anew=False) as seconds:
        time.sleep(0.05)
    timings = seconds.timings()
    assert 0.05 <= timings["last_part"] < timings["total"]
    assert timings["total"] >= 0.15
    assert not list(tmp_path.iterdir())


def test_a_run_that_starts_over_has_its_own_time(tmp_path):
    path = tmp_path / "seconds"
    keep_seconds(path, 1000)
    with (
        pytest.raises(KeyboardInterrupt),
        adding_up_seconds(path, Console(io.StringIO()), anew=True) as seconds,
    ):
        raise KeyboardInterrupt
    assert list(seconds.timings()) == ["total"]
    assert read_sealed(path)["seconds"] < 1000


def test_a_killed_run_counts_to_its_last_seconds(tmp_path):
    path = tmp_path / "seconds"
    program = f"""
import os, signal, time
from pipeline.outputs import job
from pathlib import Path
from bert_tf.base.console import Console
from bert_tf.base.json_files import read_sealed
path = Path({str(path)!r})
job._SECONDS = 0.01
with job.adding_up_seconds(path, Console(), anew=False):
    while not path.exists() or read_sealed(path)["seconds"] < 0.1:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == -signal.SIGKILL
    with adding_up_seconds(path, Console(io.StringIO()), anew=False) as seconds:
        assert seconds.earlier >= 0.1


@pytest.mark.parametrize("content", [b"", b"12.5\n", b'{"seconds": 1', b"{}", b"\xff", None])
def test_a_damaged_time_is_reported_and_starts_at_zero(tmp_path, content):
    path = tmp_path / "seconds"
    keep_seconds(path, 1000)
    path.write_bytes(path.read_bytes().replace(b"1000", b"1001") if content is None else content)
    stream = io.StringIO()
    with adding_up_seconds(path, Console(stream), anew=False) as seconds:
        assert seconds.earlier == 0
    assert f"warning: {path}: damaged; the time of earlier runs is missing" in stream.getvalue()
    assert not path.exists()
