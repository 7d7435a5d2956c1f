"""Workers that train together, as `deploy/multi-worker.sh` starts them, each in a process."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from behavior.forks import Fork
from behavior.ports import free_ports
from behavior.pretraining_runs import losses, train, write_model_config
from behavior.timing import wait_until

MAIN = """
import sys

from pipeline.cli.main import main

main(sys.argv[1:])
"""
SCRIPT = Path(__file__).parents[2] / "deploy" / "multi-worker.sh"
# In the place of `bert-pipeline`: says what the script calls it with.
SAYING = """#!/bin/sh
printf '%s\\n' "$TF_CONFIG" "$@"
"""
# Of `make workers-test`: interpreters of their own, which hash texts differently.
COUNT_IN_INTERPRETERS = "BERT_PIPELINE_TEST_WORKERS"
STEPS, SAVED = 120, 10
SECONDS = 900  # guards against hanging only
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


class Interpreter(subprocess.Popen):
    """A worker that the script starts in a new interpreter, with the interface of `Fork`."""

    def __init__(self, arguments):
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        super().__init__([SCRIPT, *arguments], env={**os.environ, "PATH": path}, **pipes)

    def is_running(self):
        return self.poll() is None

    def kill(self):
        super().kill()
        self.wait()
        self.stdout.close()
        self.stderr.close()


def forked_worker(folder, arguments):
    """Fork a worker with the arguments that the script gives to `bert-pipeline`.

    Args:
        folder: for a command in the place of `bert-pipeline`.
        arguments: of the script.
    """
    command = folder / "bert-pipeline"
    command.write_text(SAYING)
    command.chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    said = subprocess.run(
        [SCRIPT, *arguments], env={"PATH": path}, capture_output=True, text=True, check=True
    )
    cluster, *called = said.stdout.splitlines()
    return Fork(MAIN, *called, env={"TF_CONFIG": cluster})


@contextmanager
def training_workers(folder, *, count, data, output, sets=()):
    """Yield a function that starts all workers; they are stopped in the end.

    Args:
        folder: an empty one for what the workers need.
        count: of workers.
        data, output: as `train` takes them.
        sets: further arguments of `--set`.
    """
    hosts = ",".join(f"127.0.0.1:{port}" for port in free_ports(count))
    config = write_model_config(folder)
    keys = {**NO_DROPOUT, "precision": "float32", "xla": "off", "log_every": 1}
    keys |= {"eval_every": STEPS, "checkpoint_every": SAVED, "checkpoint_minutes": 0}
    given = [f"train.{key}={value}" for key, value in keys.items()]
    command = ["train", "--data", data, "--output", output, "--model-config", config]
    command += ["--batch-size", 4, "--steps", STEPS]
    command += [word for each in (*given, *sets) for word in ("--set", each)]
    started = []

    def start():
        workers = []
        for index in range(count):
            arguments = [str(word) for word in (hosts, index, *command)]
            if COUNT_IN_INTERPRETERS in os.environ:
                workers.append(Interpreter(arguments))
            else:
                workers.append(forked_worker(folder, arguments))
            started.append(workers[-1])
        return workers

    try:
        yield start
    finally:
        for process in started:
            process.kill()


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
        assert all(worker.is_running() for worker in workers)
        return (run / "checkpoints" / f"step-{SAVED:08d}" / "state.json").is_file()

    wait_until(is_saved, "the first checkpoint")
    os.kill(workers[-1].pid, signal.SIGKILL)
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
