import io
import itertools
import json
import math
import signal

import numpy as np
import pytest
from behavior.forks import printed_in_forks
from behavior.loop_runs import losses, run_until
from behavior.packed_task import RECORDS, STEPS, make_inputs, make_packed_loop
from behavior.regression_task import Numbers, make_loop

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, UsageError
from bert_tf.training.metrics_log import read_metrics
from bert_tf.training.throughput import WORK_COUNTS, count_work

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """Twelve steps with noise that depends on the dropout key; lines every 5 steps."""
    path = tmp_path_factory.mktemp("uninterrupted")
    make_loop(run_directory=path, noise=1.0, log_every=5).run()
    return losses(path)


def test_the_loss_falls_and_a_line_has_the_keys_of_the_contract(tmp_path):
    make_loop(run_directory=tmp_path, steps=40, log_every=10, steps_per_call=10).run()
    lines = read_metrics(tmp_path / "metrics.jsonl")
    assert [line["step"] for line in lines] == [10, 20, 30, 40]
    assert lines[-1]["loss"] < 0.5 * lines[0]["loss"]
    assert lines[-1].keys() >= {
        *("step", "split", "time", "loss", "learning_rate"),
        *("examples_per_second", "tokens_per_second", "absolute_error"),
    }
    for line in lines:
        rounding = 0.05 + 4 * 0.0005  # of tokens, and of 4 times the examples
        assert line["tokens_per_second"] == pytest.approx(
            4 * line["examples_per_second"], abs=1.01 * rounding
        )


def test_what_an_evaluation_has_read_stays(tmp_path):
    """Though later steps update large weights in place, and those between two need no copies."""
    held = []

    def evaluate(step, notes):
        kernel = loop.training_step.model.trainable_variables[0]
        held.append((kernel.value.read_value(), kernel.numpy().copy()))
        return {}

    loop = make_loop(units=2**15, eval_every=4, steps_per_call=1, evaluate=evaluate)
    loop.run()
    assert len(held) == 3
    for tensor, value in held:
        np.testing.assert_array_equal(tensor, value)
    assert not np.array_equal(held[0][1], held[1][1])


@pytest.mark.parametrize(("log_every", "first"), [(1, 1), (5, 5)], ids=["each", "between"])
def test_a_log_ends_with_the_last_step(log_every, first):
    """Though it shows a line every 15 s, and also where no line is due at that step."""
    log = io.StringIO()
    console = Console(log, log_seconds=1e9)
    make_loop(
        console=console,
        log_every=log_every,
        eval_every=12,
        evaluate=lambda step, notes: {"loss": 1.0},
    ).run()
    steps = [line.split("  ")[0] for line in log.getvalue().splitlines() if "loss" in line]
    assert steps == [f"step {first}/12", "step 12/12", "step 12, eval: loss 1.0000"]


def test_a_resumed_run_repeats_the_losses_to_the_last_bit(tmp_path, uninterrupted):
    """It stops between two lines; after that the calls are of other lengths."""
    stopped = make_loop(run_directory=tmp_path, noise=1.0, log_every=5, steps_per_call=1)
    run_until(stopped, 7)
    result = make_loop(run_directory=tmp_path, noise=1.0, log_every=5).run()
    assert result.resumed_from == 7
    assert losses(tmp_path) == uninterrupted


def test_lines_after_the_checkpoint_are_written_again(tmp_path, uninterrupted):
    stopped = make_loop(
        run_directory=tmp_path, noise=1.0, log_every=5, steps_per_call=1, checkpoint_every=4
    )
    run_until(stopped, 11, save=False)
    assert max(losses(tmp_path)) == 10
    result = make_loop(run_directory=tmp_path, noise=1.0, log_every=5, checkpoint_every=4).run()
    assert result.resumed_from == 8
    assert losses(tmp_path) == uninterrupted


@pytest.mark.slow  # starts processes, since whoever else holds the signal would end the tests
def test_a_signal_saves_and_reports_how_to_resume(tmp_path):
    codes = {signal.SIGTERM: 143, signal.SIGINT: 130}
    programs = [
        "import os, signal\n"
        "from pathlib import Path\n"
        "from behavior.regression_task import make_loop\n"
        "from bert_tf.base.errors import StoppedEarly\n"
        f"number = signal.{number.name}\n"
        "signal.signal(number, signal.SIG_DFL)\n"
        f"loop = make_loop(run_directory=Path({str(tmp_path / number.name)!r}), steps=100,\n"
        "    eval_every=8, evaluate=lambda step, notes: os.kill(os.getpid(), number) or {})\n"
        "try:\n"
        "    loop.run()\n"
        "except StoppedEarly as stopped:\n"
        "    print(stopped.exit_code, signal.getsignal(number) is signal.SIG_DFL, stopped)\n"
        for number in codes
    ]
    printed = printed_in_forks(*programs)
    for (number, code), said in zip(codes.items(), printed, strict=True):
        assert f"{code} True stopped at step 8 of 100 ({number.name}): saved in" in said
        assert (tmp_path / number.name / "checkpoints" / "step-00000008").is_dir()


def test_notes_and_elapsed_time_survive(tmp_path):
    def evaluate(step, notes):
        notes["steps"] = [*notes.get("steps", []), step]
        return {"loss": 1.0 / step}

    run_until(make_loop(run_directory=tmp_path, evaluate=evaluate, eval_every=4,
                        steps_per_call=1), 6)  # fmt: skip
    state = json.loads((tmp_path / "checkpoints/step-00000006/state.json").read_text())
    result = make_loop(run_directory=tmp_path, evaluate=evaluate, eval_every=4).run()
    assert result.notes == {"steps": [4, 8, 12]}
    assert result.eval["loss"] == 1.0 / 12
    assert result.seconds > state["elapsed_seconds"] > 0


@pytest.mark.parametrize("eval_every", [4, 5])
@pytest.mark.parametrize("metrics", [{}, {"loss": 1.0}])
def test_the_last_step_is_evaluated_once(tmp_path, eval_every, metrics):
    """This holds whether or not it is due there, and when a finished run is taken up again."""
    evaluated = []

    def evaluate(step, notes):
        evaluated.append(step)
        return metrics

    for _ in range(2):
        make_loop(run_directory=tmp_path, eval_every=eval_every, evaluate=evaluate).run()
    assert evaluated == [*range(eval_every, 12, eval_every), 12]


def test_the_last_checkpoint_holds_the_last_evaluation_and_line(tmp_path):
    """This holds where one was due before, too; nothing is written twice later."""

    def evaluate(step, notes):
        notes["best"] = {"step": step}
        return {"loss": 1.0}

    keys = {"log_every": 5, "eval_every": 5, "checkpoint_every": 4, "evaluate": evaluate}
    make_loop(run_directory=tmp_path, **keys).run()
    state = json.loads((tmp_path / "checkpoints/step-00000012/state.json").read_text())
    assert state["notes"]["best"] == {"step": 12}
    assert state["pending"] == {}
    assert {split: line["step"] for split, line in state["lines"].items()} == {
        "train": 12,
        "eval": 12,
    }
    before = (tmp_path / "metrics.jsonl").read_bytes()
    make_loop(run_directory=tmp_path, **keys).run()
    assert (tmp_path / "metrics.jsonl").read_bytes() == before


def test_a_run_is_extended_with_the_schedule_of_the_new_total(tmp_path, console):
    keys = {"run_directory": tmp_path, "warmup_steps": 0, "log_every": 1}
    assert make_loop(**keys).run().extended_from == []
    before = losses(tmp_path)
    run_until(make_loop(steps=24, steps_per_call=1, console=console, **keys), 15)
    assert "extended from 12 to 24 steps: from here on, learning rates are those of" in console.text
    result = make_loop(steps=24, **keys).run()
    assert (result.step, result.resumed_from, result.extended_from) == (24, 15, [12])
    after = losses(tmp_path)
    assert {step: after[step] for step in before} == before
    rates = [after[step]["learning_rate"] for step in range(13, 25)]
    assert rates == pytest.approx([1e-2 * (1 - step / 24) for step in range(12, 24)])
    assert make_loop(steps=36, **keys).run().extended_from == [12, 24]
    with pytest.raises(UsageError, match="has 36 steps already, more than the 30 asked for"):
        make_loop(steps=30, **keys).run()


def test_data_that_changed_are_an_error(tmp_path):
    run_until(make_loop(run_directory=tmp_path, steps_per_call=1), 2)
    with pytest.raises(UsageError, match="the data have changed since; start again"):
        make_loop(run_directory=tmp_path, inputs=Numbers(rows=7)).run()


def test_a_finished_run_trains_no_further(tmp_path):
    make_loop(run_directory=tmp_path).run()
    before = losses(tmp_path)
    result = make_loop(run_directory=tmp_path).run()
    assert (result.step, result.resumed_from) == (12, 12)
    assert result.train["step"] == 12
    assert losses(tmp_path) == before


def test_a_loss_that_is_not_finite_stops_the_run_with_its_last_good_state(tmp_path):
    loop = make_loop(run_directory=tmp_path, inputs=Numbers(bad_from=6))
    with pytest.raises(InputError, match="not finite at step 7; the state just before is in") as e:
        loop.run()
    assert "lower --learning-rate" in str(e.value)
    assert (tmp_path / "failed" / "step-00000006" / "state.safetensors").is_file()
    assert all(np.isfinite(v.numpy()).all() for v in loop.variables.values())
    assert math.isfinite(read_metrics(tmp_path / "metrics.jsonl")[-1]["loss"])


def test_the_state_before_a_failure_resumes_as_if_nothing_had_happened(tmp_path):
    """Its owner moves it among the checkpoints and mends the data."""
    undisturbed = make_loop(run_directory=tmp_path / "undisturbed")
    undisturbed.run()
    with pytest.raises(InputError):
        make_loop(run_directory=tmp_path / "run", inputs=Numbers(bad_from=6)).run()
    saved = tmp_path / "run" / "failed" / "step-00000006"
    (tmp_path / "run" / "checkpoints").mkdir(exist_ok=True)
    saved.rename(tmp_path / "run" / "checkpoints" / saved.name)
    mended = make_loop(run_directory=tmp_path / "run")
    assert mended.run().resumed_from == 6
    for name, variable in undisturbed.variables.items():
        np.testing.assert_array_equal(mended.variables[name].numpy(), variable.numpy(), name)


def test_parts_of_a_batch_give_the_curve_of_the_whole():
    whole = make_loop().run().train
    parts = make_loop(accumulation_steps=4).run().train
    for name in ("loss", "absolute_error", "gradient_norm"):
        assert parts[name] == pytest.approx(whole[name], rel=1e-4)


@pytest.mark.parametrize("accumulation_steps", [1, 2])
def test_rows_divided_among_cores_give_the_curve_of_the_whole(accumulation_steps):
    whole = make_loop().run().train
    divided = make_loop(shards=2, accumulation_steps=accumulation_steps).run().train
    for name in ("loss", "absolute_error", "gradient_norm"):
        assert divided[name] == pytest.approx(whole[name], rel=1e-4)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_low_precision_resumes_exactly_and_repeats(policy, tmp_path):
    keys = {"policy": policy, "noise": 1.0, "steps": 20}
    whole = make_loop(**keys, run_directory=tmp_path / "whole").run().train
    run_until(make_loop(**keys, run_directory=tmp_path / "parts", steps_per_call=1), 7)
    for found in (make_loop(**keys, run_directory=tmp_path / "parts"), make_loop(**keys)):
        resumed = found.run().train
        for name in ("loss", "gradient_norm"):
            assert resumed[name] == whole[name]


def test_rows_divided_among_cores_resume_exactly(tmp_path):
    keys = {"shards": 4, "noise": 1.0, "steps": 20}
    whole = make_loop(**keys, run_directory=tmp_path / "whole").run().train
    run_until(make_loop(**keys, run_directory=tmp_path / "parts", steps_per_call=1), 7)
    resumed = make_loop(**keys, run_directory=tmp_path / "parts").run().train
    assert (resumed["loss"], resumed["gradient_norm"]) == (whole["loss"], whole["gradient_norm"])


def test_lamb_learns_and_resumes_exactly(tmp_path):
    whole = make_loop(run_directory=tmp_path / "whole", optimizer="lamb", steps=40).run()
    lines = losses(tmp_path / "whole")
    assert lines[40]["loss"] < 0.5 * lines[1]["loss"]
    keys = {"run_directory": tmp_path / "parts", "optimizer": "lamb", "steps": 40}
    run_until(make_loop(**keys, steps_per_call=1), 7)
    assert make_loop(**keys).run().train["loss"] == whole.train["loss"]


@pytest.mark.slow  # XLA compiles a step
def test_xla_gives_the_same_curve():
    plain, compiled = make_loop().run().train, make_loop(use_xla=True).run().train
    assert compiled["loss"] == pytest.approx(plain["loss"], rel=1e-4)


def test_loss_scaling_leaves_the_curve_alone_and_skips_overflows(tmp_path):
    plain = make_loop().run().train
    loop = make_loop(policy="mixed_float16", run_directory=tmp_path)
    loop.training_step.loss_scale.assign(4e19)  # its square is beyond float32
    scaled = loop.run().train
    lines = read_metrics(tmp_path / "metrics.jsonl")
    assert lines[0]["step"] > 1, "the first steps overflow and are not logged"
    assert scaled["loss_scale"] < 4e19
    loop = make_loop(policy="mixed_float16")
    assert loop.run().train["loss"] == pytest.approx(plain["loss"], rel=1e-4)


def test_a_time_budget_ends_the_run_and_the_learning_rate(tmp_path, monkeypatch):
    ticks = itertools.count()
    monkeypatch.setattr("bert_tf.training.timeline.time.monotonic", lambda: 0.01 * next(ticks))
    result = make_loop(
        run_directory=tmp_path, steps=10**7, warmup_steps=0, max_minutes=1 / 60, log_every=5
    ).run()
    rates = [line["learning_rate"] for line in read_metrics(tmp_path / "metrics.jsonl")]
    assert 20 < result.step < 1000
    assert rates == sorted(rates, reverse=True)
    assert 0.8e-2 < rates[0] <= 1e-2
    assert rates[-1] < 0.2e-2


def test_clipping_limits_the_norm_of_the_sum():
    """The norm is far below Adam's epsilon: almost nothing moves, and the true norm is logged."""
    loop = make_loop(gradient_clip_norm=1e-9, steps=2, warmup_steps=0)
    kernel = loop.variables["model/0000"]
    before = kernel.numpy()
    assert loop.run().train["gradient_norm"] > 0.1
    weight_decay = 2 * 1e-2 * 0.01 * np.abs(before).max()
    assert np.abs(kernel.numpy() - before).max() < weight_decay + 2 * 1e-2 * 1e-3


# Training on packed rows: shapes, interruptions, and the work it is.


def test_all_shapes_are_known_before_a_batch_is_read(tmp_path):
    inputs = make_inputs(tmp_path)
    assert all(spec.shape.is_fully_defined() for spec in inputs.batches(0).element_spec.values())


def test_a_run_stopped_inside_a_block_of_the_second_epoch_resumes_exactly(tmp_path):
    """Equal to the last bit, with dropout; the second part has calls of other lengths."""
    make_packed_loop(tmp_path, run_directory=tmp_path / "whole", dropout=0.1).run()
    keys = {"run_directory": tmp_path / "parts", "dropout": 0.1}
    stopped = make_packed_loop(tmp_path, steps_per_call=1, **keys)
    step = next(n for n in range(STEPS) if is_inside_a_block(stopped.inputs.position(n)))
    run_until(stopped, step)
    result = make_packed_loop(tmp_path, **keys).run()
    assert (result.resumed_from, result.step) == (step, STEPS)
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")


def is_inside_a_block(position):
    return position["epoch"] == 1 and position["row"] > 0


def test_an_epoch_is_the_same_work_packed_and_padded(tmp_path):
    epochs = []
    for packing in ("on", "off"):
        inputs = make_inputs(tmp_path, packing, batch_size=1, row_multiple=1)
        rows = RECORDS if packing == "off" else int(inputs.packing.block_rows.sum())
        counts = [count_work(batch) for batch in inputs.batches(0).take(rows)]
        epochs.append({name: sum(float(count[name]) for count in counts) for name in counts[0]})
    assert epochs[0] == epochs[1]
    assert epochs[0]["examples"] == RECORDS


def test_a_line_has_the_share_of_the_peak_and_not_what_it_is_reckoned_from(tmp_path):
    line = make_packed_loop(tmp_path, steps=1, peak_flops=1e9).run().train
    assert line["mfu"] > 0
    assert line["tokens_per_second"] > line["examples_per_second"]
    assert not line.keys() & {*WORK_COUNTS, "flops"}
