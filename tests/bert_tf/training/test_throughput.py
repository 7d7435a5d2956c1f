from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.base.processor import CoreTimes
from bert_tf.base.wording import Rates
from bert_tf.models.model_flops import ModelFlops
from bert_tf.training import throughput
from bert_tf.training.progress import LineBuilder, progress_text
from bert_tf.training.throughput import WORK_COUNTS, count_work, measure_matmul_peak

WORK = ModelFlops(
    token_parameters=1000, example_parameters=100, prediction_parameters=10, attention_width=7
)
MASKS = [[1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [0, 0, 0, 0, 0]]


@pytest.fixture(autouse=True)
def measured_for_long_enough(monkeypatch):
    """The other tests measure for 0.01 s, see `conftest.py`."""
    monkeypatch.setattr(throughput, "_PEAK_SECONDS", 0.3)


@pytest.mark.parametrize(
    "batch",
    [
        pytest.param(
            {
                "input_mask": MASKS,
                "masked_lm_weights": [[1.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]],
            },
            id="masked records, the last row filling up the batch",
        ),
        pytest.param(
            {
                "input_mask": MASKS,
                "masked_lm_weights": [[1.0, *[0.0] * 4], [1.0, *[0.0] * 4],
                                      [1.0, 1.0, 0.0, 0.0, 0.0], [0.0] * 5],
            },
            id="unmasked records, with room for a target a token",
        ),
        pytest.param(
            {
                "input_mask": [[1, 1, 1, 1, 1], [1, 1, 1, 1, 0], [0, 0, 0, 0, 0]],
                "sequence_ids": [[1, 1, 1, 2, 2], [1, 1, 1, 1, 0], [0, 0, 0, 0, 0]],
                "position_ids": [[0, 1, 2, 0, 1], [0, 1, 2, 3, 0], [0, 0, 0, 0, 0]],
                "masked_lm_weights": [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]],
            },
            id="packed",
        ),
    ],
)  # fmt: skip
def test_a_batch_is_reckoned_with_by_its_sequences_however_they_lie(batch):
    """Sequences of 2, 3 and 4 tokens with 1, 1 and 2 targets."""
    counts = count_work({name: tf.constant(rows) for name, rows in batch.items()})
    assert tuple(counts) == WORK_COUNTS
    numbers = {name: float(count) for name, count in counts.items()}
    assert numbers == {"tokens": 9, "examples": 3, "squared_lengths": 29, "predictions": 4}
    assert WORK.flops(**numbers) == 58_476.0


def test_tasks_without_a_masked_lm_head_have_no_predictions():
    assert float(count_work({"input_mask": tf.constant(MASKS)})["predictions"]) == 0.0


def test_the_peak_is_the_rate_of_the_fastest_product(monkeypatch):
    """One product takes 8/64 s, the next 4/64 s; then the time for measuring is over."""
    sixty_fourths = iter([0, 1, 2, 10, 11, 12, 16, 20])
    clock = SimpleNamespace(monotonic=lambda: next(sixty_fourths) / 64)
    monkeypatch.setattr(throughput, "time", clock)
    monkeypatch.setattr(CoreTimes, "taken_by_others", lambda self: 0.0)
    peak = measure_matmul_peak("float32", tf.distribute.get_strategy())
    size = throughput._PEAK_SIZES["GPU" if tf.config.list_physical_devices("GPU") else "CPU"]
    assert peak == 2 * size**3 * 16
    assert not list(sixty_fourths)


def test_no_peak_is_measured_while_others_keep_the_processors_busy(monkeypatch):
    if tf.config.list_physical_devices("GPU"):
        pytest.skip("its peak does not depend on the processors")
    monkeypatch.setattr(CoreTimes, "taken_by_others", lambda self: 0.5)
    assert measure_matmul_peak("float32", tf.distribute.get_strategy()) is None


def test_no_step_is_faster_than_the_peak():
    builder = LineBuilder()
    numbers = {"loss": 2.0, "finite": 1.0, "examples": 4.0, "tokens": 400.0, "loss_scale": 1.0}
    shares = []
    for flops in (2e9, 8e9, 4e9):
        builder.add(
            {n: np.full(1, v) for n, v in {**numbers, "learning_rate": 0.1, "flops": flops}.items()}
        )
        line = builder.train_line(step=1, elapsed=1.0, seconds=1.0, peak_flops=5e9)
        shares.append(line["mfu"])
    assert shares == [0.4, 1.0, 0.5]


def test_a_progress_line_has_speed_share_of_the_peak_and_time_left():
    builder = LineBuilder()
    numbers = {"loss": 2.0, "finite": 1.0, "examples": 4.0, "tokens": 400.0, "loss_scale": 1.0}
    numbers |= {"learning_rate": 0.1, "flops": 3e9}
    builder.add({name: np.full(2, value) for name, value in numbers.items()})
    line = builder.train_line(step=2, elapsed=9.0, seconds=4.0, peak_flops=5e9)
    assert line["mfu"] == 0.3
    assert "flops" not in line
    assert progress_text(line, total_steps=10, seconds_left=3725.0) == (
        "step 2/10  loss 2.0000  2.0 examples/s  200 tokens/s  30% of peak  1:02:05 left"
    )
    priced = progress_text(line, total_steps=10, seconds_left=3600.0, rates=Rates(2.0, 250.0))
    assert priced.endswith("  1:00:00 left (cost 2.00, 0.25 kWh)")
    builder.add({name: np.full(2, value) for name, value in numbers.items()})
    assert "mfu" not in builder.train_line(step=4, elapsed=9.0, seconds=4.0)
