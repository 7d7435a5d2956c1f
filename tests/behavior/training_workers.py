"""Workers that train together, started by the script that people start theirs with."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from behavior.ports import free_ports
from behavior.pretraining_runs import losses, train, write_model_config
from behavior.timing import wait_until

ROOT = Path(__file__).parents[2]
STEPS, SAVED = 200, 20
SECONDS = 900  # guards against hanging only
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


@contextmanager
def training_workers(folder, *, count, data, output, sets=()):
    """Yield a function that starts all workers; they are stopped in the end.

    Args:
        folder: an empty one for what the workers need.
        count: of workers.
        data, output: as `train` takes them.
        sets: further arguments of `--set`.
    """
    command = folder / "bin" / "bert-pipeline"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m pipeline "$@"\n')
    command.chmod(0o755)
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environment = {
        **os.environ,
        "PATH": f"{command.parent}:{os.environ['PATH']}",
        "PYTHONPATH": path,
    }
    hosts = ",".join(f"127.0.0.1:{port}" for port in free_ports(count))
    config = write_model_config(folder)
    keys = {**NO_DROPOUT, "precision": "float32", "xla": "off", "log_every": 1}
    keys |= {"eval_every": STEPS, "checkpoint_every": SAVED, "checkpoint_minutes": 0}
    given = [f"train.{key}={value}" for key, value in keys.items()]
    started = []

    def start():
        workers = [
            subprocess.Popen(
                [
                    *(ROOT / "deploy" / "multi-worker.sh", hosts, str(index), "train"),
                    *("--data", str(data), "--output", str(output), "--model-config", config),
                    *("--batch-size", "4", "--steps", str(STEPS)),
                    *(word for each in (*given, *sets) for word in ("--set", each)),
                ],
                env=environment,
                stderr=subprocess.PIPE,
                text=True,
            )
            for index in range(count)
        ]
        started.extend(workers)
        return workers

    try:
        yield start
    finally:
        for process in started:
            process.kill()
            process.communicate()


def check_lost_worker(start, *, count, data, run, folder):
    """A worker that is lost ends all; started again, they have the losses of one worker alone.

    Args:
        start: of `training_workers`.
        count: of workers.
        data: the records, on this machine.
        run: what the workers write.
        folder: for the run of one worker.
    """
    workers = start()

    def is_saved():
        assert all(worker.poll() is None for worker in workers)
        return (run / "checkpoints" / f"step-{SAVED:08d}" / "state.json").is_file()

    wait_until(is_saved, "the first checkpoint")
    workers[-1].send_signal(signal.SIGKILL)
    said = [worker.communicate(timeout=SECONDS)[1] for worker in workers[:-1]]
    assert [worker.returncode for worker in workers[:-1]] == [1] * (count - 1)
    assert "error: another worker of the cluster is gone" in said[0]
    assert "please report" not in said[0]
    assert f"on {count} workers (127.0.0.1:" in said[0]
    assert "this is worker 0 and writes the run" in said[0]

    workers = start()
    said = [worker.communicate(timeout=SECONDS)[1] for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * count, said
    assert "resumed from " in said[0]

    config = folder / "config.json"
    train(data, folder / "alone", model_config=config, steps=STEPS, **NO_DROPOUT)
    together, alone = losses(run), losses(folder / "alone")
    assert [line["step"] for line in together] == list(range(1, STEPS + 1))
    for line, expected in zip(together, alone, strict=True):
        assert line == pytest.approx(expected, rel=1e-4)
