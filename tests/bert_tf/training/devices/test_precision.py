import pytest
import tensorflow as tf

from bert_tf.training.devices import precision
from bert_tf.training.devices.precision import choose_precision


@pytest.mark.parametrize(
    ("asked", "xla", "static", "flags", "policy", "use_xla"),
    [
        ("auto", "auto", True, {"avx2"}, "float32", True),
        ("auto", "auto", True, {"avx512_bf16"}, "mixed_bfloat16", False),
        ("auto", "auto", False, {"avx2"}, "float32", False),
        ("float32", "auto", True, {"avx512_bf16"}, "float32", True),
        ("bfloat16", "on", False, {"avx2"}, "mixed_bfloat16", True),
        ("float16", "off", True, {"avx2"}, "mixed_float16", False),
    ],
)
def test_what_auto_means_on_processors(
    monkeypatch, console, asked, xla, static, flags, policy, use_xla
):
    monkeypatch.setattr(precision, "processor_flags", lambda: flags)
    chosen = choose_precision(
        asked, xla, static_shapes=static, strategy=tf.distribute.get_strategy(), console=console
    )
    assert (chosen.policy, chosen.use_xla) == (policy, use_xla)
    assert chosen.scale_loss == (asked == "float16")
    assert console.text.startswith(f"CPU, {policy.removeprefix('mixed_')}, with")
