"""The search for the number of micro-batches, with trials that say what fits."""

import io

import pytest

from bert_tf.base.console import Console
from bert_tf.base.errors import ConfigError, RunnerFailed
from bert_tf.config.bert import sized_config
from bert_tf.config.section import build_section
from bert_tf.config.sections.pretraining import TrainConfig
from bert_tf.data.records.dataset_info import PretrainingData
from bert_tf.pretraining import accumulation
from bert_tf.pretraining.accumulation import doubled, keep_accumulation, settle_accumulation
from bert_tf.pretraining.memory_trial import peak_of_step
from bert_tf.pretraining.phases import pretraining_phases
from bert_tf.pretraining.step_trial import StepShape
from bert_tf.training.devices.machine_memory import Memory
from bert_tf.training.devices.precision import Arithmetic, PrecisionPolicy

DATA = PretrainingData(
    directory="data", max_seq_length=128, max_predictions_per_seq=20, vocab_size=30522,
    vocab_sha256="", lowercase=True, train_shards=(),
)  # fmt: skip
MINI = sized_config("mini", 30522)
KEYS = {
    "data": "data",
    "size": "mini",
    "steps": 10,
    "gradient_accumulation_steps": "auto",
    "precision": "bfloat16",
    "xla": "off",
}


def settled(tmp_path, **keys):
    """The numbers of the phases, and what was said."""
    said = io.StringIO()
    config = build_section(TrainConfig, {**KEYS, "output": str(tmp_path), **keys})
    phases = pretraining_phases(config, [DATA] * max(1, len(config.phases)))
    phases = settle_accumulation(config, MINI, phases, Console(said))
    keep_accumulation(config, phases)
    return [phase.accumulation_steps for phase in phases], said.getvalue()


@pytest.fixture
def machine(monkeypatch):
    """Sets what memory there is, and how many rows at once fit in trials; keeps what was tried."""

    def of(gigabytes, fitting_rows):
        tried = []

        def peak(model, shape, arithmetic, *, micro_batches, pool_bytes):
            tried.append(micro_batches)
            assert shape.rows % (micro_batches * arithmetic.shards) == 0
            return 10**9 if shape.rows / micro_batches <= fitting_rows else None

        memory = Memory(total=round(gigabytes * 1e9), available=round(gigabytes * 1e9))
        monkeypatch.setattr(accumulation, "memory_for_steps", lambda: memory)
        monkeypatch.setattr(accumulation, "peak_of_step", peak)
        return tried

    return of


def test_numbers_double_and_divide_the_batch():
    assert list(doubled(32)) == [1, 2, 4, 8, 16, 32]
    assert list(doubled(24)) == [1, 2, 4, 8, 24]
    assert list(doubled(7)) == [1, 7]


def test_what_surely_fits_is_not_tried(machine, tmp_path):
    tried = machine(100, 0)
    numbers, said = settled(tmp_path, batch_size=64)
    assert (numbers, tried) == ([1], [])
    assert "gradient accumulation: 1 micro-batch (a step takes about " in said


def test_trials_begin_at_the_estimate_and_double_until_one_fits(machine, tmp_path):
    tried = machine(4.0, 64)
    numbers, said = settled(tmp_path, batch_size=512)
    assert tried == [4, 8]  # by the estimate 3.1 GB for 128 rows at once, 4.9 GB for 256
    assert numbers == [8]
    assert "gradient accumulation: 8 micro-batches (a trial step took 1.0 GB)" in said
    machine(4.0, 512)
    assert settled(tmp_path, batch_size=512)[0] == [8]  # as the run began with


def test_phases_with_numbers_of_their_own_keep_them(machine, tmp_path):
    machine(100, 0)
    phases = [
        {"data": "a", "steps": 5, "gradient_accumulation_steps": 4},
        {"data": "b", "steps": 5},
    ]
    assert settled(tmp_path, data=None, phases=phases)[0] == [4, 1]


def test_what_does_not_fit_row_by_row_is_one_line(machine, tmp_path):
    machine(2.0, 0)
    with pytest.raises(RunnerFailed, match="a step does not fit into the memory .* row by row"):
        settled(tmp_path, batch_size=4)


def test_several_machines_need_a_number():
    keys = {**KEYS, "output": "run", "strategy": "multi-worker"}
    with pytest.raises(ConfigError, match="for the strategies default and mirrored; give a number"):
        build_section(TrainConfig, keys)
    with pytest.raises(ConfigError, match="expected a whole number or auto, got 'many'"):
        build_section(TrainConfig, {**keys, "gradient_accumulation_steps": "many"})


@pytest.mark.slow  # starts processes that load TensorFlow
def test_a_trial_says_its_peak_and_none_where_the_pool_is_too_small():
    way = Arithmetic(precision=PrecisionPolicy("float32", False), shards=1)
    model = sized_config("tiny", 1000).replace(num_hidden_layers=1)
    shape = StepShape(rows=64, length=128, predictions=2)
    peak = peak_of_step(model, shape, way, micro_batches=2, pool_bytes=1 << 30)
    assert 0.5e9 < peak < 2e9
    assert peak_of_step(model, shape, way, micro_batches=1, pool_bytes=16 << 20) is None


def test_rows_that_cannot_be_halved_are_tried_whole(tmp_path, machine):
    tried = machine(2.4, fitting_rows=25)
    assert settled(tmp_path, batch_size=50)[0] == [2]
    assert tried[-1] == 2


def test_a_number_kept_for_other_batches_is_found_anew(tmp_path, machine):
    machine(2.6, fitting_rows=16)
    first, _ = settled(tmp_path, batch_size=64)
    second, _ = settled(tmp_path, batch_size=32)
    assert (first, second) == ([4], [2])
