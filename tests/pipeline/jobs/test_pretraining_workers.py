"""`train` on several workers: the losses of one, and a worker that is lost and started again."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from behavior.ports import free_ports
from pretraining_runs import losses, train, write_model_config

pytestmark = pytest.mark.slow  # starts processes that train together

ROOT = Path(__file__).parents[3]
STEPS, SAVED = 200, 20
SECONDS = 300
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


@pytest.fixture
def start_worker(tmp_path, data):
    """Starts a worker by its index with the script that people start theirs with."""
    command = tmp_path / "bin" / "bert-pipeline"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m pipeline "$@"\n')
    command.chmod(0o755)
    hosts = ",".join(f"127.0.0.1:{port}" for port in free_ports(2))
    config = write_model_config(tmp_path)
    started = []

    def start(index):
        keys = {**NO_DROPOUT, "precision": "float32", "xla": "off", "log_every": 1}
        keys |= {"eval_every": STEPS, "checkpoint_every": SAVED, "checkpoint_minutes": 0}
        sets = [word for key, value in keys.items() for word in ("--set", f"train.{key}={value}")]
        process = subprocess.Popen(
            [
                *(ROOT / "deploy" / "multi-worker.sh", hosts, str(index), "train"),
                *("--data", data, "--output", tmp_path / "run", "--model-config", config),
                *("--batch-size", "4", "--steps", str(STEPS), *sets),
            ],
            env={
                **os.environ,
                "PATH": f"{command.parent}:{os.environ['PATH']}",
                "PYTHONPATH": str(ROOT),
            },
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_lost_worker_ends_all_and_they_resume(start_worker, data, tmp_path):
    workers = [start_worker(0), start_worker(1)]
    end = time.monotonic() + SECONDS
    while not (tmp_path / "run" / "checkpoints" / f"step-{SAVED:08d}").is_dir():
        assert time.monotonic() < end
        assert all(worker.poll() is None for worker in workers)
        time.sleep(0.05)
    workers[1].send_signal(signal.SIGKILL)
    _, said = workers[0].communicate(timeout=SECONDS)
    assert workers[0].returncode == 1
    assert "error: another worker of the cluster is gone" in said.splitlines()[-1]
    assert "please report" not in said
    assert "on 2 workers (127.0.0.1:" in said
    assert "this is worker 0 and writes the run" in said

    workers = [start_worker(0), start_worker(1)]
    said = [worker.communicate(timeout=SECONDS)[1] for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0]
    assert "resumed from " in said[0]

    config = tmp_path / "config.json"
    train(data, tmp_path / "alone", model_config=config, steps=STEPS, **NO_DROPOUT)
    together, alone = losses(tmp_path / "run"), losses(tmp_path / "alone")
    assert [line["step"] for line in together] == list(range(1, STEPS + 1))
    for line, expected in zip(together, alone, strict=True):
        assert line == pytest.approx(expected, rel=1e-4)
