"""How busy other processes keep the cores, and which instructions may be used."""

import dataclasses

import pytest
from behavior.timing import wait_until

from bert_tf.base import processor
from bert_tf.base.processor import CoreTimes, usable_cores


@pytest.fixture
def later(monkeypatch):
    """Sets the times that are read from now on."""

    def read(**times):
        monkeypatch.setattr(CoreTimes, "read", classmethod(lambda cls: cls(**times)))

    return read


def test_what_others_take_is_neither_idle_nor_ours(later):
    before = CoreTimes(now=10.0, busy=100.0, own=7.0)
    cores = usable_cores()
    later(now=12.0, busy=100.0 + 1.5 * cores, own=7.0 + 1.0 * cores)
    assert before.taken_by_others() == pytest.approx(0.25)  # of 2 s of each core 0.5
    assert dataclasses.replace(before, busy=None).taken_by_others() == 0.0
    later(now=12.0, busy=100.0, own=9.0)  # clocks are not exact
    assert before.taken_by_others() == 0.0


def test_our_own_work_is_counted(monkeypatch):
    before = CoreTimes.read()
    if before.busy is None:
        pytest.skip("this system does not tell")

    def has_worked():
        sum(range(100_000))
        after = CoreTimes.read()
        return after.own >= before.own + 0.1 and after.busy >= before.busy + 0.05

    wait_until(has_worked, "0.1 s of our own work, and 0.05 s in the ticks of the system")
    monkeypatch.setattr(processor, "Path", lambda path: FileNotFoundPath())
    assert CoreTimes.read().busy is None


class FileNotFoundPath:
    """Of a system without /proc."""

    def read_text(self, encoding):
        raise FileNotFoundError


@pytest.mark.parametrize(
    ("flags", "limit", "expected"),
    [
        ({"avx2", "avx512f", "avx512_bf16"}, "", True),
        ({"avx2", "avx512f", "avx512_bf16"}, "ALL", True),
        ({"avx2", "avx512f", "avx512_bf16"}, "avx2", False),
        ({"avx2", "avx512f"}, "", False),
        ({"amx_bf16"}, "AVX512_CORE_BF16", True),
    ],
)
def test_bfloat16_where_the_processor_has_it_and_onednn_may(monkeypatch, flags, limit, expected):
    monkeypatch.setattr(processor, "processor_flags", lambda: flags)
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", limit)
    assert processor.has_bfloat16() == expected
