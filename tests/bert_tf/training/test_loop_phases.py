"""Runs over several data sets; batches of 8 rows, then of 16 in two parts."""

import dataclasses

import numpy as np
import pytest
from behavior.loop_runs import losses, run_until
from behavior.regression_task import Numbers, make_loop

from bert_tf.training.metrics_log import read_metrics
from bert_tf.training.timeline import LoopSettings, PhasedInputs, PhaseSettings, Timeline

PHASES = (
    PhaseSettings(steps=5, warmup_steps=2, peak_learning_rate=1e-2),
    PhaseSettings(steps=7, accumulation_steps=2),
)


def loop(**keys):
    inputs = PhasedInputs([Numbers(), Numbers(batch_rows=16)], [5, 7])
    return make_loop(**{"inputs": inputs, "phases": PHASES, "noise": 1.0, **keys})


def timeline(*phases, **keys):
    return Timeline(LoopSettings(phases=phases, **keys))


def rates(timeline, steps):
    return [timeline.learning_rates(n, 1, elapsed=0.0, seconds_per_step=0.0)[0] for n in steps]


@pytest.mark.slow
def test_schedule_and_weights_continue_into_the_next_phase(tmp_path):
    result = loop(run_directory=tmp_path).run()
    assert result.step == 12
    lines = losses(tmp_path)
    expected = timeline(PhaseSettings(steps=12, warmup_steps=2, peak_learning_rate=1e-2))
    assert [line["learning_rate"] for line in lines.values()] == pytest.approx(
        rates(expected, range(12))
    )
    assert lines[12]["loss"] < lines[1]["loss"]


def test_positions_name_the_phase_and_start_anew():
    inputs = PhasedInputs([Numbers(), Numbers(batch_rows=16)], [5, 7])
    assert inputs.position(4) == {"phase": 0, "row": 32, "rows": 10**6}
    assert inputs.position(5) == {"phase": 1, "row": 0, "rows": 10**6}
    assert inputs.position(12) == {"phase": 1, "row": 112, "rows": 10**6}
    batch = next(iter(inputs.batches(6)))
    np.testing.assert_array_equal(
        batch["numbers"], next(iter(Numbers(batch_rows=16).batches(1)))["numbers"]
    )


@pytest.mark.slow  # trains three times
@pytest.mark.parametrize("stop", [3, 5, 6])
def test_a_run_resumed_anywhere_repeats_the_losses_to_the_last_bit(tmp_path, stop):
    loop(run_directory=tmp_path / "whole").run()
    run_until(loop(run_directory=tmp_path / "parts", steps_per_call=1), stop)
    assert loop(run_directory=tmp_path / "parts").run().resumed_from == stop
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")


@pytest.mark.slow
def test_a_phase_is_evaluated_at_its_end(tmp_path, console):
    loop(run_directory=tmp_path, console=console, evaluate=lambda step, notes: {"loss": 0.0}).run()
    evaluated = [
        line["step"] for line in read_metrics(tmp_path / "metrics.jsonl") if line["split"] == "eval"
    ]
    assert evaluated == [5, 12]
    assert "phase 2 of 2 from step 5" in console.text


def test_a_peak_of_its_own_starts_the_schedule_anew():
    """NVIDIA's LAMB recipe in small: 10 steps to 6e-3, then 4 to 4e-3, each with a warmup."""
    both = timeline(
        PhaseSettings(steps=10, warmup_steps=2, peak_learning_rate=6e-3),
        PhaseSettings(steps=4, warmup_steps=1, peak_learning_rate=4e-3),
        PhaseSettings(steps=4),
        schedule="polynomial",
    )
    alone = [
        timeline(
            PhaseSettings(steps=steps, warmup_steps=warmup, peak_learning_rate=peak),
            schedule="polynomial",
        )
        for steps, warmup, peak in ((10, 2, 6e-3), (8, 1, 4e-3))
    ]
    expected = rates(alone[0], range(10)) + rates(alone[1], range(8))
    assert rates(both, range(18)) == pytest.approx(expected)


def test_time_left_reckons_with_the_work_of_later_phases():
    phases = (
        dataclasses.replace(PHASES[0], relative_work=1.0),
        dataclasses.replace(PHASES[1], relative_work=4.0),
    )
    left = timeline(*phases).seconds_left
    assert left(3, elapsed=0.0, seconds_per_step=2.0) == 2 * 2.0 + 7 * 8.0
    assert left(10, elapsed=0.0, seconds_per_step=8.0) == 2 * 8.0
