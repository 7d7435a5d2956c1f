"""The batches that are divided, and the cores that TensorFlow gives an operation then."""

from types import SimpleNamespace

import pytest
import tensorflow as tf
from behavior.forks import printed_in_forks

from bert_tf.cpu import cores
from bert_tf.cpu.cores import (
    divide_cores_among_parts,
    operations_at_once,
    row_shards,
)


@pytest.mark.parametrize("usable", [1, 2, 3, 16])
@pytest.mark.parametrize(("rows", "expected"), [(32, 2), (4, 2), (3, 1)])
def test_the_number_of_parts_does_not_depend_on_the_cores(monkeypatch, usable, rows, expected):
    monkeypatch.setattr(cores, "usable_cores", lambda: usable)
    assert row_shards(rows) == expected


@pytest.mark.parametrize(("usable", "share"), [(1, 1), (2, 1), (5, 2), (16, 8)])
def test_each_part_has_its_share_of_the_cores(monkeypatch, usable, share):
    told = {}
    threading = SimpleNamespace(
        set_intra_op_parallelism_threads=lambda count: told.update(intra=count),
        set_inter_op_parallelism_threads=lambda count: told.update(inter=count),
        get_intra_op_parallelism_threads=lambda: told["intra"],
    )
    monkeypatch.setattr(cores, "usable_cores", lambda: usable)
    monkeypatch.setattr(tf.config, "threading", threading)
    divide_cores_among_parts()
    assert told == {"intra": share, "inter": 2}
    assert operations_at_once() == 2


def test_batches_for_gpus_stay_whole(monkeypatch):
    monkeypatch.setattr(cores, "usable_cores", lambda: 2)
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["GPU:0"])
    assert row_shards(32) == 1


def test_operations_that_divide_themselves_leave_no_core(monkeypatch):
    monkeypatch.setattr(tf.config.threading, "get_intra_op_parallelism_threads", lambda: 0)
    assert operations_at_once() == 1


@pytest.mark.slow  # starts processes
def test_cores_are_divided_unless_tensorflow_has_started():
    programs = [
        "import tensorflow as tf\n"
        "from bert_tf.cpu.cores import divide_cores_among_parts\n"
        f"{first}\n"
        "divide_cores_among_parts()\n"
        "print(tf.config.threading.get_intra_op_parallelism_threads() > 0)\n"
        for first in ("pass", "tf.constant(1)")
    ]
    assert printed_in_forks(*programs) == ["True", "False"]
