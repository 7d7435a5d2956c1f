"""The fast path is off by a key, and where it cannot be loaded."""

import pytest
import tensorflow as tf
from behavior.forks import printed_in_forks

from bert_tf.config.bert import BertConfig
from bert_tf.config.section import build_section
from bert_tf.config.sections.pretraining import TrainConfig
from bert_tf.cpu import availability
from bert_tf.cpu.backend import CpuBackend
from bert_tf.layers.implementation import PLAIN, implementation
from bert_tf.models.heads import BertPretrainingModel
from bert_tf.pretraining.loss import PretrainingLoss
from bert_tf.training.arithmetic import Arithmetic, PrecisionPolicy
from bert_tf.training.optimizers import make_optimizer
from bert_tf.training.step import PlainBackend, TrainingStep

CONFIG = BertConfig(
    vocab_size=50,
    hidden_size=8,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=16,
    max_position_embeddings=16,
)


def backend_of_step(**arithmetic):
    model = BertPretrainingModel(CONFIG)
    model.build_weights()
    section = build_section(TrainConfig, {"data": "-", "output": "-", "size": "tiny"})
    optimizer = make_optimizer(section, num_hidden_layers=1)
    optimizer.build(model.trainable_variables)
    precision = PrecisionPolicy("float32", use_xla=False, use_kernels=True)
    step = TrainingStep(
        model=model,
        loss=PretrainingLoss(),
        optimizer=optimizer,
        strategy=tf.distribute.get_strategy(),
        arithmetic=Arithmetic(precision=precision, **arithmetic),
    )
    return step._backend, optimizer


@pytest.fixture
def cannot_load(monkeypatch):
    monkeypatch.setattr(availability, "why_not", lambda: "OSError: no such library")
    monkeypatch.setattr(availability, "_WARNED", set())


def test_it_can_be_used_here():
    assert availability.why_not() is None
    assert implementation() is PLAIN
    backend, optimizer = backend_of_step(shards=2)
    assert isinstance(backend, CpuBackend)
    assert optimizer.in_place is not None


def test_off_is_plain_layers_and_a_plain_optimizer():
    backend, optimizer = backend_of_step(cpu_kernels=False)
    assert isinstance(backend, PlainBackend)
    assert optimizer.in_place is None


def test_what_cannot_be_loaded_is_one_warning_and_the_plain_path(cannot_load):
    warnings = []
    assert not availability.is_available(warnings.append)
    assert not availability.is_available(warnings.append)
    (warning,) = warnings
    assert "cannot be used (OSError: no such library)" in warning
    assert "cpu_kernels: off" in warning
    backend, optimizer = backend_of_step(shards=2)
    assert isinstance(backend, PlainBackend)
    assert optimizer.in_place is None


WITHOUT_NUMBA = """
import sys
for name in [name for name in sys.modules if name.startswith("bert_tf.cpu.")]:
    del sys.modules[name]
sys.modules["numba"] = None
"""
BROKEN = (
    "from bert_tf.cpu.kernels import operation; operation.framework_library = lambda *_: '/no/lib'"
)


@pytest.mark.slow  # starts processes
def test_the_reason_is_said_where_a_library_is_missing_and_steps_do_without():
    says = "from bert_tf.cpu.availability import why_not; print(why_not())"
    steps = (
        "from bert_tf.config.bert import BertConfig\n"
        "from bert_tf.pretraining.step_trial import StepShape, steps_of\n"
        "from bert_tf.training.arithmetic import Arithmetic, PrecisionPolicy\n"
        f"config = BertConfig(**{CONFIG.fields()!r})\n"
        "way = Arithmetic(precision=PrecisionPolicy('float32', False, True), shards=2)\n"
        "steps_of(config, way, StepShape(rows=4, length=8, predictions=2))(2)\n"
    )
    without_numba, broken = printed_in_forks(
        f"{WITHOUT_NUMBA}\n{says}", f"{BROKEN}\n{says}\n{steps}"
    )
    assert "numba" in without_numba
    assert "OSError: /no/lib" in broken
