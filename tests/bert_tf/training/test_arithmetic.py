"""The arithmetic of a run is decided once, and stays when the run is resumed elsewhere."""

import re
import sys

import pytest
import tensorflow as tf

from bert_tf.base import processor
from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.base.json_files import sealed
from bert_tf.config.bert import sized_config
from bert_tf.config.section import build_section
from bert_tf.config.sections.pretraining import TrainConfig
from bert_tf.cpu import availability, cores
from bert_tf.training import arithmetic
from bert_tf.training.arithmetic import (
    ARITHMETIC_FILE,
    BatchRows,
    PrecisionPolicy,
    keep_arithmetic,
    settle_arithmetic,
)
from bert_tf.xla import cudnn

ROWS = BatchRows(batch=32, micro_batches=1, is_filled_up=False)


@pytest.fixture
def machine(monkeypatch):
    """Set cores and instructions of the machine; TensorFlow's threads stay as they are."""
    monkeypatch.setattr(arithmetic, "divide_cores_among_parts", lambda: None)
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)  # of the machine that runs the tests

    def set_machine(usable_cores, flags):
        monkeypatch.setattr(cores, "usable_cores", lambda: usable_cores)
        monkeypatch.setattr(processor, "processor_flags", lambda: flags)

    return set_machine


def settle(run, console, *rows, trial=None, **options):
    config = build_section(
        TrainConfig, {"data": "-", "output": str(run), "size": "tiny", **options}
    )
    settled = settle_arithmetic(
        config,
        rows,
        strategy=tf.distribute.get_strategy(),
        console=console,
        trial=trial,
    )
    keep_arithmetic(config, settled)
    return settled.precision.policy, settled.precision.use_xla, settled.shards


def test_a_resumed_run_keeps_what_it_began_with(tmp_path, console, machine):
    machine(2, {"avx512_bf16"})
    began = settle(tmp_path / "run", console, ROWS)
    assert began == ("mixed_bfloat16", False, 2)
    machine(1, {"avx2"})
    assert settle(tmp_path / "run", console, ROWS) == began
    assert console.text.splitlines()[-1] == (
        "keeping the arithmetic of this run: bfloat16, with fused kernels, batches in 2 parts"
    )
    assert settle(tmp_path / "other", console, ROWS) == ("float32", False, 2)


def test_a_run_from_before_kernels_goes_on_without(tmp_path, console, machine):
    machine(2, {"avx512_bf16"})
    kept = {"policy": "mixed_bfloat16", "use_xla": False, "shards": 2}
    (tmp_path / ARITHMETIC_FILE).write_text(sealed(kept))
    settle(tmp_path, console, ROWS)
    assert console.text == (
        "keeping the arithmetic of this run: bfloat16, without XLA, batches in 2 parts\n"
    )


def test_a_damaged_record_is_made_again(tmp_path, console, machine):
    machine(2, {"avx512_bf16"})
    (tmp_path / ARITHMETIC_FILE).write_text('{"policy": "float32", "checksum": ""}')
    assert settle(tmp_path, console, ROWS) == ("mixed_bfloat16", False, 2)


def test_the_phase_that_cannot_be_divided_decides(tmp_path, console, machine):
    machine(4, {"avx512_bf16"})
    odd = BatchRows(batch=31, micro_batches=1, is_filled_up=False)
    assert settle(tmp_path / "one", console, ROWS)[2] == 2
    assert settle(tmp_path / "two", console, ROWS, odd)[2] == 1
    assert settle(tmp_path / "none", console)[2] == 1


def test_what_xla_compiles_and_replicas_compute_stays_whole(tmp_path, console, machine):
    machine(2, {"avx512_bf16"})
    assert settle(tmp_path / "xla", console, ROWS, xla="on") == ("mixed_bfloat16", True, 1)
    run = tmp_path / "mirrored"
    assert settle(run, console, ROWS, strategy="mirrored") == ("mixed_bfloat16", False, 1)
    assert not run.exists()


def test_a_run_without_kernels_is_not_divided_and_one_that_began_with_them_goes_on_without(
    tmp_path, console, machine
):
    machine(2, {"avx512_bf16"})
    off = {"cpu_kernels": "off"}
    assert settle(tmp_path / "off", console, ROWS, **off) == ("mixed_bfloat16", False, 1)
    assert "bfloat16, without XLA" in console.text
    settle(tmp_path / "run", console, ROWS)
    assert settle(tmp_path / "run", console, ROWS, **off) == ("mixed_bfloat16", False, 1)
    assert console.text.splitlines()[-1].endswith("this run: bfloat16, without XLA")


def test_a_run_where_kernels_cannot_be_loaded_says_so_once(tmp_path, console, machine, monkeypatch):
    machine(2, {"avx512_bf16"})
    monkeypatch.setattr(availability, "why_not", lambda: "OSError: no such library")
    monkeypatch.setattr(availability, "_WARNED", set())
    for name in ("one", "two"):
        assert settle(tmp_path / name, console, ROWS) == ("mixed_bfloat16", False, 1)
    assert console.text.count("cannot be used (OSError: no such library)") == 1


def trial_with(milliseconds):
    """Return a trial whose steps take so long, by policy and compiler."""

    def trial(ways):
        return [milliseconds[way.precision.policy, way.precision.use_xla] / 1000 for way in ways]

    return trial


@pytest.mark.parametrize(
    ("float32_with_xla", "chosen"),
    [(40, ("float32", True, 1)), (97, ("mixed_bfloat16", False, 2))],
    ids=["faster", "as-fast"],
)
def test_a_trial_chooses_what_is_clearly_faster(
    tmp_path, console, machine, float32_with_xla, chosen
):
    machine(2, {"avx512_bf16"})
    trial = trial_with(
        {
            ("mixed_bfloat16", False): 100,
            ("mixed_bfloat16", True): 400,
            ("float32", False): 200,
            ("float32", True): float32_with_xla,
        }
    )
    assert settle(tmp_path, console, ROWS, trial=trial) == chosen
    assert "  bfloat16, with fused kernels, batches in 2 parts: 100 ms\n" in console.text
    assert "  bfloat16, with XLA: 400 ms\n" in console.text
    assert settle(tmp_path, console, ROWS, trial=None) == chosen, "kept for the resumed run"


def test_no_low_precision_where_onednn_may_not_compute_it(tmp_path, console, machine, monkeypatch):
    machine(2, {"avx512_bf16"})
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    assert settle(tmp_path / "run", console, ROWS) == ("float32", False, 2)
    assert {way.precision.policy for way in arithmetic.candidate_ways(shards=2)} == {"float32"}
    with pytest.raises(UsageError, match="precision bfloat16: .*ONEDNN_MAX_CPU_ISA excludes it"):
        settle(tmp_path / "other", console, ROWS, precision="bfloat16")


@pytest.mark.parametrize(
    ("options", "settled"),
    [
        ({"precision": "float32"}, ("float32", False, 2)),
        ({"xla": "off"}, ("mixed_bfloat16", False, 2)),
    ],
)
def test_what_the_config_says_is_not_tried(tmp_path, console, machine, options, settled):
    machine(2, {"avx512_bf16"})
    assert settle(tmp_path, console, ROWS, trial=pytest.fail, **options) == settled


@pytest.mark.parametrize(
    ("batch", "micro_batches", "is_filled_up", "shards"),
    [(32, 2, False, 2), (32, 16, False, 1), (30, 2, False, 1), (30, 2, True, 2), (12, 1, False, 2)],
)
def test_parts_divide_micro_batches(batch, micro_batches, is_filled_up, shards):
    rows = BatchRows(batch=batch, micro_batches=micro_batches, is_filled_up=is_filled_up)
    assert rows.shards() == shards


def chosen_attention(
    attention, *, dropout=0.0, heads=2, policy="mixed_bfloat16", use_xla=True, console=None
):
    model = sized_config(
        "tiny", 100, num_attention_heads=heads, attention_probs_dropout_prob=dropout
    )
    config = build_section(
        TrainConfig, {"data": "-", "output": "-", "size": "tiny", "attention": attention}
    )
    precision = PrecisionPolicy(policy, use_xla)
    return arithmetic.choose_attention(
        config, precision, model=model, console=console or Console(quiet=True)
    )


def test_attention_is_fused_on_gpus_that_can(monkeypatch):
    assert not chosen_attention("auto"), "there is no GPU"
    monkeypatch.setattr(arithmetic, "_why_gpus_cannot_fuse", lambda: None)
    assert chosen_attention("auto")
    assert chosen_attention("auto", dropout=0.1), "evaluations have no dropout"
    assert chosen_attention("fused")
    assert not chosen_attention("plain")
    assert not chosen_attention("auto", policy="float32")
    assert not chosen_attention("auto", use_xla=False)
    assert not chosen_attention("auto", heads=32), "heads of 4"


def test_a_gpu_without_fused_attention_says_why_in_a_line(monkeypatch, console):
    monkeypatch.setattr(arithmetic, "_has_gpu", lambda: True)
    monkeypatch.setattr(arithmetic, "_why_gpus_cannot_fuse", cudnn.why_unavailable)
    monkeypatch.setitem(sys.modules, "tensorflow.compiler.tf2xla.python", None)
    cudnn.why_unavailable.cache_clear()
    assert not chosen_attention("auto", console=console)
    (line,) = console.text.splitlines()
    assert "attention is not fused: this TensorFlow cannot hold cuDNN's calls (" in line
    cudnn.why_unavailable.cache_clear()


def test_dropout_of_attention_is_named_where_it_costs_speed(monkeypatch, console):
    monkeypatch.setattr(arithmetic, "_why_gpus_cannot_fuse", lambda: None)
    assert chosen_attention("auto", dropout=0.1, console=console)
    assert "attention_probs_dropout_prob=0 fuses it there, too" in console.text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "attention: fused: cuDNN's kernels need an NVIDIA GPU, and TensorFlow has none; "),
        ({"dropout": 0.1}, "attention_probs_dropout_prob is 0.1; set that to 0, or attention to "),
        ({"policy": "float32"}, "need precision bfloat16 or float16; set it to auto"),
        ({"use_xla": False}, "xla is off; set it to auto"),
        ({"heads": 32}, "multiple of 8 up to 128, and those of the model have 4; set it to auto"),
    ],
)
def test_fused_attention_that_cannot_be_had_is_refused(options, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        chosen_attention("fused", **options)


def test_a_resumed_run_keeps_its_attention(tmp_path, console, monkeypatch):
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)  # no product is computed here
    options = {"precision": "bfloat16", "xla": "on"}
    with monkeypatch.context() as on_gpus:
        on_gpus.setattr(arithmetic, "_why_gpus_cannot_fuse", lambda: None)
        settle(tmp_path / "run", console, ROWS, **options)
        settle(tmp_path / "run", console, ROWS, **options)
        assert "keeping the arithmetic" in console.text
        assert "bfloat16, with XLA, fused attention" in console.text.splitlines()[-1]
    settle(tmp_path / "run", console, ROWS, **options)
    assert "continues without: cuDNN's kernels need an NVIDIA GPU" in console.text
    assert console.text.splitlines()[-1].endswith("bfloat16, with XLA")
