"""One and two replicas give the same curve; each strategy runs in processes of its own."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf
from regression_task import Numbers, SquaredError, make_loop

from bert_tf.training.evaluation import Evaluation

SCRIPT = Path(__file__).with_name("replicas.py")
ROOT = Path(__file__).parents[3]


def one_replica(optimizer):
    loop = make_loop(optimizer=optimizer, ema_decay=0.9)
    result = loop.run()
    evaluation = Evaluation(
        model=loop._compiled._model,
        loss=SquaredError(),
        strategy=loop._strategy,
        make_dataset=lambda: Numbers().batches(100).take(3),
    )
    return {
        "train": result.train,
        "eval": evaluation.run(),
        "average": {"kernel": float(tf.norm(loop._variables["average/0000"]))},
    }


def start(*arguments, **environment):
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "-1", **environment},
    )


def printed(process):
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors[-3000:]
    return json.loads(output.strip().splitlines()[-1])


def assert_same_curve(two, one):
    for split in ("train", "eval", "average"):
        for name, value in two[split].items():
            assert value == pytest.approx(one[split][name], rel=1e-4), (split, name)


@pytest.mark.parametrize("optimizer", ["adamw", "lamb"])
def test_two_processors_of_one_machine(optimizer):
    assert_same_curve(printed(start("mirrored", optimizer)), one_replica(optimizer))


def test_two_workers_on_loopback(tmp_path):
    with socket.socket() as first, socket.socket() as second:
        for each in (first, second):
            each.bind(("127.0.0.1", 0))
        ports = [each.getsockname()[1] for each in (first, second)]
    cluster = {"worker": [f"127.0.0.1:{port}" for port in ports]}
    workers = [
        start(
            "multi-worker",
            "adamw",
            str(tmp_path),
            TF_CONFIG=json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}}),
        )
        for index in range(2)
    ]
    try:
        results = [printed(worker) for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()
    assert [result["chief"] for result in results] == [True, False]
    alone = one_replica("adamw")
    for result in results:
        assert_same_curve(result, alone)
    assert (tmp_path / "checkpoints" / "step-00000012").is_dir()
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 12
