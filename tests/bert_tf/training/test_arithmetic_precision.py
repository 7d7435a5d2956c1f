import os

import pytest
import tensorflow as tf

from bert_tf.base import processor
from bert_tf.training.arithmetic import choose_precision, make_deterministic


@pytest.mark.parametrize(
    ("asked", "xla", "flags", "policy", "compiled"),
    [
        ("auto", "auto", {"avx2"}, "float32", "with fused kernels"),
        ("auto", "auto", {"avx512_bf16"}, "mixed_bfloat16", "with fused kernels"),
        ("bfloat16", "off", {"avx2"}, "mixed_bfloat16", "with fused kernels"),
        ("float32", "auto", {"avx512_bf16"}, "float32", "with fused kernels"),
        ("bfloat16", "on", {"avx2"}, "mixed_bfloat16", "with XLA"),
        ("float16", "off", {"avx2"}, "mixed_float16", "without XLA"),
    ],
)
def test_what_auto_means_on_processors(monkeypatch, console, asked, xla, flags, policy, compiled):
    monkeypatch.setattr(processor, "processor_flags", lambda: flags)
    chosen = choose_precision(asked, xla, strategy=tf.distribute.get_strategy(), console=console)
    assert chosen.policy == policy
    assert chosen.use_xla == (compiled == "with XLA")
    assert chosen.use_kernels == (compiled == "with fused kernels")
    assert chosen.scale_loss == (asked == "float16")
    assert console.text == f"CPU, {policy.removeprefix('mixed_')}, {compiled}\n"


@pytest.mark.parametrize(
    ("capability", "chosen"),
    [
        ((8, 0), "bfloat16, with XLA"),
        ((7, 5), "float16, with XLA"),
        ((7, 0), "float16, with XLA"),
        ((6, 1), "float32, with XLA"),
    ],
)
def test_what_auto_means_on_gpus(monkeypatch, console, capability, chosen):
    listed = {"GPU": ["a GPU"]}
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: listed.get(kind, []))
    details = {"compute_capability": capability}
    monkeypatch.setattr(tf.config.experimental, "get_device_details", lambda gpu: details)
    strategy = tf.distribute.get_strategy()
    assert str(choose_precision("auto", "auto", strategy=strategy, console=console)) == chosen


def test_deterministic_gpus_get_the_flags_of_tensorflow_and_xla(monkeypatch):
    """And programs that XLA kept of other runs, whose cache ignores the flag, are not used."""
    asked = []
    monkeypatch.setattr(
        tf.config.experimental, "enable_op_determinism", lambda: asked.append("operations")
    )
    monkeypatch.setenv("XLA_FLAGS", "--xla_of_the_user=1")
    monkeypatch.setenv("TF_XLA_FLAGS", "--tf_xla_persistent_cache_directory=/cache")
    make_deterministic()
    assert asked == ["operations"]
    assert os.environ["XLA_FLAGS"] == "--xla_of_the_user=1 --xla_gpu_deterministic_ops=true"
    assert "TF_XLA_FLAGS" not in os.environ
