"""Which batches are divided among the cores, and what TensorFlow is told for that."""

import subprocess
import sys

import pytest
import tensorflow as tf

from bert_tf.training.devices import cores
from bert_tf.training.devices.cores import cores_left, row_shards


@pytest.mark.parametrize(
    ("usable", "rows", "expected"),
    [
        (1, 32, 1),
        (2, 32, 2),
        (4, 32, 4),
        (16, 32, 1),
        (4, 8, 4),
        (4, 7, 1),
    ],
)
def test_batches_are_divided_among_few_cores(monkeypatch, usable, rows, expected):
    monkeypatch.setattr(cores, "usable_cores", lambda: usable)
    assert row_shards(rows) == expected


def test_batches_for_gpus_stay_whole(monkeypatch):
    monkeypatch.setattr(cores, "usable_cores", lambda: 2)
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["GPU:0"])
    assert row_shards(32) == 1


def test_operations_that_divide_themselves_leave_no_core(monkeypatch):
    monkeypatch.setattr(tf.config.threading, "get_intra_op_parallelism_threads", lambda: 0)
    assert cores_left() == 1


@pytest.mark.slow  # starts processes
@pytest.mark.parametrize(("first", "threads"), [("pass", "1"), ("tf.constant(1)", "0")])
def test_operations_run_on_one_core_unless_tensorflow_has_started(first, threads):
    program = (
        "import tensorflow as tf\n"
        "from bert_tf.training.devices.cores import run_operations_on_one_core\n"
        f"{first}\n"
        "run_operations_on_one_core()\n"
        "print(tf.config.threading.get_intra_op_parallelism_threads())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == threads
