import pytest
import tensorflow as tf

from bert_tf.base import processor
from bert_tf.training.arithmetic import choose_precision


@pytest.mark.parametrize(
    ("asked", "xla", "static", "flags", "policy", "compiled"),
    [
        ("auto", "auto", True, {"avx2"}, "float32", "with fused kernels"),
        ("auto", "auto", True, {"avx512_bf16"}, "mixed_bfloat16", "with fused kernels"),
        ("auto", "auto", False, {"avx2"}, "float32", "with fused kernels"),
        ("bfloat16", "off", True, {"avx2"}, "mixed_bfloat16", "with fused kernels"),
        ("float32", "auto", True, {"avx512_bf16"}, "float32", "with fused kernels"),
        ("bfloat16", "on", False, {"avx2"}, "mixed_bfloat16", "with XLA"),
        ("float16", "off", True, {"avx2"}, "mixed_float16", "without XLA"),
    ],
)
def test_what_auto_means_on_processors(
    monkeypatch, console, asked, xla, static, flags, policy, compiled
):
    monkeypatch.setattr(processor, "processor_flags", lambda: flags)
    chosen = choose_precision(
        asked, xla, static_shapes=static, strategy=tf.distribute.get_strategy(), console=console
    )
    assert chosen.policy == policy
    assert chosen.use_xla == (compiled == "with XLA")
    assert chosen.use_kernels == (compiled == "with fused kernels")
    assert chosen.scale_loss == (asked == "float16")
    assert console.text == f"CPU, {policy.removeprefix('mixed_')}, {compiled}\n"
