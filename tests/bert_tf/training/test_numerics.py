import pytest

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.training.devices import precision
from bert_tf.training.devices.precision import choose_precision
from bert_tf.training.devices.strategy import is_chief_process, make_strategy


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
    numerics = choose_precision(asked, xla, static_shapes=static, console=console)
    assert (numerics.policy, numerics.use_xla) == (policy, use_xla)
    assert numerics.scale_loss == (asked == "float16")
    assert console.text.startswith(f"CPU, {policy.removeprefix('mixed_')}, with")


def test_workers_need_their_names(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(UsageError, match="TF_CONFIG is not set; set it on every worker"):
        make_strategy("multi-worker", None, Console())
    monkeypatch.setenv("TF_CONFIG", "{")
    with pytest.raises(UsageError, match="TF_CONFIG is not valid JSON"):
        is_chief_process("multi-worker")


@pytest.mark.parametrize(
    ("cluster", "task", "chief"),
    [
        ('{"worker": ["a:1", "b:1"]}', '{"type": "worker", "index": 0}', True),
        ('{"worker": ["a:1", "b:1"]}', '{"type": "worker", "index": 1}', False),
        ('{"chief": ["a:1"], "worker": ["b:1"]}', '{"type": "chief", "index": 0}', True),
        ('{"chief": ["a:1"], "worker": ["b:1"]}', '{"type": "worker", "index": 0}', False),
    ],
)
def test_one_worker_is_the_chief(monkeypatch, cluster, task, chief):
    monkeypatch.setenv("TF_CONFIG", f'{{"cluster": {cluster}, "task": {task}}}')
    assert is_chief_process("multi-worker") == chief
    assert is_chief_process("default")
