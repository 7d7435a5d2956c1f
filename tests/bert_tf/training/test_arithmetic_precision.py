import pytest
import tensorflow as tf

from bert_tf.base import processor
from bert_tf.training.arithmetic import choose_precision


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
    ("capability", "chosen"), [((8, 0), "bfloat16, with XLA"), ((7, 5), "float32, with XLA")]
)
def test_what_auto_means_on_gpus(monkeypatch, console, capability, chosen):
    listed = {"GPU": ["a GPU"]}
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: listed.get(kind, []))
    details = {"compute_capability": capability}
    monkeypatch.setattr(tf.config.experimental, "get_device_details", lambda gpu: details)
    strategy = tf.distribute.get_strategy()
    assert str(choose_precision("auto", "auto", strategy=strategy, console=console)) == chosen
