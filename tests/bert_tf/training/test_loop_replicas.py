"""One and two replicas give the same curve; each strategy runs in processes of its own."""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf
from behavior.forks import Fork
from behavior.packed_task import STEPS, assert_same_losses, make_packed_loop
from behavior.ports import free_ports
from behavior.regression_task import make_loop
from behavior.replicas import regression_numbers

from bert_tf.training.metrics_log import read_metrics

pytestmark = pytest.mark.slow  # trains in several processes at once

SCRIPT = Path(__file__).parents[2] / "behavior" / "replicas.py"
ROOT = Path(__file__).parents[3]
# Makes TensorFlow log how often XLA has compiled each function.
LOG_COMPILATIONS = {
    "TF_CPP_MIN_LOG_LEVEL": "0",
    "TF_CPP_VMODULE": "device_compilation_profiler=1",
}
COMPILATIONS = re.compile(r"Compiled (\S+) (\d+) times")


def start(name, runs, *tasks, **environment):
    return Fork(SCRIPT, name, runs, *tasks, env={"CUDA_VISIBLE_DEVICES": "-1", **environment})


def start_logged(name, runs, *tasks):
    """Start a new interpreter: TensorFlow decides about logging when it is imported."""
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), name, str(runs), *tasks],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "CUDA_VISIBLE_DEVICES": "-1",
            **LOG_COMPILATIONS,
        },
    )


def printed(process):
    output, errors = process.communicate(timeout=900)
    assert process.returncode == 0, errors[-3000:]
    return json.loads(output.strip().splitlines()[-1]), errors


@pytest.fixture(scope="module")
def two_processors(tmp_path_factory):
    """Return run directories, stdout as JSON, and stderr, of a machine of two devices."""
    runs = tmp_path_factory.mktemp("mirrored")
    process = start_logged("mirrored", runs, "adamw", "lamb", "packed", "packed-xla")
    return runs, *printed(process)


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory):
    """Return run directories, and stdout of both workers as JSON."""
    runs = tmp_path_factory.mktemp("multi-worker")
    cluster = {"worker": [f"127.0.0.1:{port}" for port in free_ports(2)]}
    workers = [
        start(
            "multi-worker",
            runs,
            "adamw",
            "packed",
            "rows",
            TF_CONFIG=json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}}),
        )
        for index in range(2)
    ]
    try:
        return runs, [printed(worker)[0] for worker in workers]
    finally:
        for worker in workers:
            worker.kill()


def one_replica(optimizer):
    loop = make_loop(optimizer=optimizer, ema_decay=0.9)
    return regression_numbers(loop, tf.distribute.get_strategy())


def assert_same_numbers(two, one):
    for split in ("train", "eval", "average"):
        for name, value in two[split].items():
            assert value == pytest.approx(one[split][name], rel=1e-4), (split, name)


@pytest.mark.parametrize("optimizer", ["adamw", "lamb"])
def test_two_processors_of_one_machine(two_processors, optimizer):
    assert_same_numbers(two_processors[1][optimizer], one_replica(optimizer))


def test_two_workers_on_loopback(two_workers):
    runs, results = two_workers
    assert [result["chief"] for result in results] == [True, False]
    assert [result["agreed"] for result in results] == [{"measure": 1 / 3}] * 2
    alone = one_replica("adamw")
    for result in results:
        assert_same_numbers(result["adamw"], alone)
    assert (runs / "adamw" / "checkpoints" / "step-00000012").is_dir()
    assert len((runs / "adamw" / "metrics.jsonl").read_text().splitlines()) == 12


@pytest.fixture(scope="module")
def packed_alone(tmp_path_factory):
    """The run directory of pretraining on packed rows, on one device and in one part a batch."""
    folder = tmp_path_factory.mktemp("packed")
    loop = make_packed_loop(folder, run_directory=folder / "run", checkpoint_every=STEPS // 2)
    loop.run()
    assert loop.inputs.packing.sequences_per_row > 1.5
    assert loop.inputs.position(STEPS)["epoch"] == 1, "other sequences meet in another epoch"
    return folder / "run"


@pytest.mark.parametrize(
    ("fixture", "task"),
    [("two_processors", "packed"), ("two_processors", "packed-xla"), ("two_workers", "packed")],
)
def test_packed_rows_on_two_replicas_have_the_losses_of_one(request, packed_alone, fixture, task):
    """Compiled or not, though sequences and targets differ from replica to replica."""
    assert_same_losses(request.getfixturevalue(fixture)[0] / task, packed_alone)


def test_packed_batches_are_traced_and_compiled_once_a_device(two_processors):
    """Batches of other sequences, calls of other lengths, and epochs change no shape."""
    _, numbers, errors = two_processors
    assert numbers["packed"]["traces"] == {"steps": 1, "gradients": 0}
    assert numbers["packed-xla"]["traces"] == {"steps": 1, "gradients": 2}
    compilations = {name: int(times) for name, times in COMPILATIONS.findall(errors)}
    assert set(compilations.values()) == {1}, compilations
    assert len(compilations) == 2


@pytest.fixture(scope="module")
def four_processors(tmp_path_factory, packed_alone):
    """Return run directories, and stdout as JSON, of a machine of four devices.

    `packed` resumes the run of one device in the middle.
    """
    runs = tmp_path_factory.mktemp("four")
    shutil.copytree(packed_alone, runs / "packed")
    newest = max((runs / "packed" / "checkpoints").iterdir())
    assert newest.name == f"step-{STEPS:08}"
    shutil.rmtree(newest)
    tasks = ("packed", "packed-gpus", "rows")
    numbers, _ = printed(start("mirrored", runs, *tasks, REPLICAS="4"))
    assert newest.is_dir()
    return runs, numbers


def test_steps_as_on_gpus_have_the_losses_of_one_device(four_processors, packed_alone):
    """Compiled gradients, embeddings included, summed as a vector, and compiled updates."""
    assert_same_losses(four_processors[0] / "packed-gpus", packed_alone, tolerance=1e-6)


def joined(lists):
    return list(itertools.chain.from_iterable(lists))


def assert_all_rows_in_order(steps, *, batches=5, batch_rows=8):
    """`steps` holds by step the rows of each replica."""
    assert [len(joined(replicas)) for replicas in steps] == [batch_rows] * batches
    assert joined(map(joined, steps)) == list(range(batches * batch_rows))


def test_replicas_of_a_machine_run_out_of_data_at_the_same_step(four_processors):
    steps = four_processors[1]["rows"]
    assert {len(replicas) for replicas in steps} == {4}
    assert_all_rows_in_order(steps)


def test_workers_run_out_of_data_at_the_same_step(two_workers):
    """Each worker reads half of every batch, and the last batch is the last one for both."""
    first, second = (result["rows"] for result in two_workers[1])
    assert len(first) == len(second)
    assert_all_rows_in_order([left + right for left, right in zip(first, second, strict=True)])


def test_a_run_of_one_device_resumes_on_four(four_processors, packed_alone):
    """The records read, the losses and the updates are those of a run on one device."""
    runs, numbers = four_processors
    assert numbers["packed"]["resumed_from"] == STEPS // 2
    assert_same_losses(runs / "packed", packed_alone, tolerance=1e-6)


def test_gradients_summed_in_bfloat16_have_about_the_losses_of_one_device(packed_alone, tmp_path):
    printed(start("mirrored", tmp_path, "packed-gpus-bfloat16"))
    rounded, exact = (
        [line["loss"] for line in read_metrics(folder / "metrics.jsonl")]
        for folder in (tmp_path / "packed-gpus-bfloat16", packed_alone)
    )
    assert rounded == pytest.approx(exact, rel=1e-2)
    assert rounded != exact
