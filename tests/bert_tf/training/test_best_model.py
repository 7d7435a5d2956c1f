"""The models that are kept in `best/`: the rank of metrics, phases, runs without evaluation."""

import functools
import io
import math
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from behavior.loop_runs import run_until
from behavior.regression_task import make_loop
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.base.console import Console
from bert_tf.pretraining import evaluation as pretraining_evaluation
from bert_tf.pretraining.evaluation import RecordsEvaluation
from bert_tf.tasks.base.prediction_rows import TaskResults
from bert_tf.tasks.running.evaluation import EpochEvaluation
from bert_tf.training import best_model, distribution
from bert_tf.training.best_model import BestModel, BestModelKeeper, EarlyStop, rank
from bert_tf.training.distribution import WorkerSync


def kept_steps(monkeypatch, path, metric, evaluations, *, notes=None, writes=True, errors=None):
    """Return the steps whose models are written when these (found, metrics) come up one by one."""
    written, notes = [], {} if notes is None else notes

    def write(folder, model, *, vocab, lowercase, task, restore):
        assert (folder, model, vocab, lowercase, task, restore) == (
            path,
            "model",
            ["[PAD]"],
            True,
            None,
            None,
        )
        written.append(step)

    monkeypatch.setattr(best_model, "write_model_directory", write)
    keeper = BestModelKeeper(
        path, "model", metric=metric, vocab=["[PAD]"], lowercase=True, writes=writes
    )
    for found, metrics in evaluations:
        step = found["step"]
        keeper.keep_if_best(found, metrics, notes, errors=errors)
    return written, notes.get("best")


@pytest.fixture
def as_two_workers(monkeypatch):
    """Run a function as the chief, and then as another worker, which gets the chief's values."""
    monkeypatch.setattr(distribution, "worker_count", lambda strategy: 2)
    monkeypatch.setattr(distribution, "is_chief", lambda strategy: strategy == "chief")
    monkeypatch.setattr(best_model, "write_model_directory", lambda *_, **__: None)

    def run(function):
        sent = []

        def send(worker, numbers):
            if worker.writes:
                sent.append(numbers)
                return numbers
            assert len(sent[0]) == len(numbers)
            return sent.pop(0)

        monkeypatch.setattr(WorkerSync, "first", send)
        results = [function("chief"), function("other")]
        assert not sent, "each worker has taken part in every message"
        return results

    return run


def test_a_worker_whose_own_numbers_differ_stops_with_the_chief(as_two_workers, tmp_path):
    """The other one has measured a higher accuracy at step 2, and a loss that has not doubled."""
    measured = {
        "chief": [(0.5, 0.5), (0.5, 1.001)],
        "other": [(0.5, 0.5), (0.5000001, 0.999)],
    }
    errors = {"chief": 0.0, "other": 0.04}

    def train(strategy):
        task = SimpleNamespace(settings=dict)
        results = [
            TaskResults(
                metrics={"accuracy": accuracy, "loss": loss},
                predictions=[],
                errors={"accuracy": errors[strategy]},
            )
            for accuracy, loss in measured[strategy]
        ]
        evaluation = EpochEvaluation(
            SimpleNamespace(output=str(tmp_path), selection_metric="accuracy"),
            "model",
            task,
            init=SimpleNamespace(vocab=["[PAD]"], lowercase=True),
            evaluator=SimpleNamespace(fit_and_run=lambda: (task, results.pop(0))),
            strategy=strategy,
            restore=None,
        )
        (tmp_path / "best").mkdir(exist_ok=True)
        notes, stop = {}, EarlyStop(0, loss_factor=2.0)
        for step in (1, 2):
            assert stop.reason(notes) is None
            stop.count(step, notes, evaluation(step, notes))
        return notes, stop.reason(notes)

    chief, other = as_two_workers(train)
    assert chief == other
    notes, reason = other
    assert notes["best"] == {"step": 1, "accuracy": 0.5, "loss": 0.5}
    assert notes["top"]["error"] == 0.0
    assert reason.startswith("the evaluation loss, 1.0010, is over 2 times its lowest")


def test_workers_of_a_pretraining_run_that_forgets_stop_alike(
    as_two_workers, monkeypatch, tmp_path
):
    """Only the chief has measured a change above the limit."""
    measured = {"chief": [2.0, 2.51, 2.6], "other": [2.0, 2.49, 2.4]}

    def train(strategy):
        losses = iter(measured[strategy])
        monkeypatch.setattr(
            pretraining_evaluation,
            "Evaluation",
            lambda **_: SimpleNamespace(run=lambda: {"mlm_loss": next(losses)}),
        )
        data = SimpleNamespace(eval_shards=(), directory="data", paths=lambda split: [])
        evaluation = RecordsEvaluation(
            SimpleNamespace(
                eval_examples=0,
                early_stop_evals=0,
                selection_metric="old_mlm_loss",
                max_forgetting=0.5,
            ),
            [SimpleNamespace(steps=9, data=data, batch_size=1, accumulation_steps=1)],
            model="model",
            loss=None,
            strategy=strategy,
            arithmetic=None,
            best=BestModelKeeper(
                tmp_path,
                "model",
                metric="old_mlm_loss",
                vocab=["[PAD]"],
                lowercase=True,
                writes=strategy == "chief",
            ),
            console=Console(io.StringIO()),
            sets={"old": data},
        )
        evaluation.measure_before()
        notes = {}
        metrics = [evaluation(step, notes) for step in (1, 2)]
        return metrics, notes

    chief, other = as_two_workers(train)
    assert chief == other
    metrics, notes = other
    assert [each["old_mlm_loss"] for each in metrics] == [2.51, 2.6]
    assert "max_forgetting, 0.5" in notes["stop"]
    assert notes["best"]["step"] == 1


def lines(metric, values):
    return [({"step": step}, {metric: value}) for step, value in enumerate(values, 1)]


@pytest.mark.parametrize(
    ("metric", "values", "kept"),
    [
        ("mlm_loss", [3.0, 4.0, 3.0, 2.0], [1, 4]),
        ("loss", [3.0, 4.0, 3.0, 2.0], [1, 4]),
        ("accuracy", [0.3, 0.4, 0.4, 0.2], [1, 2]),
        ("accuracy", [math.nan, 0.4, math.nan, 0.5], [1, 2, 4]),
        ("loss", [math.nan, 3.0, math.nan, 2.0], [1, 2, 4]),
    ],
)
def test_the_lowest_loss_or_the_highest_of_anything_else(
    metric, values, kept, monkeypatch, tmp_path
):
    written, best = kept_steps(monkeypatch, tmp_path, metric, lines(metric, values))
    assert written == kept
    assert best == {"step": kept[-1], metric: values[kept[-1] - 1]}


def test_the_loss_decides_among_equals(monkeypatch, tmp_path):
    evaluations = [
        ({"step": step}, {"accuracy": 0.5, "loss": loss})
        for step, loss in enumerate([2.0, 3.0, 1.0], 1)
    ]
    assert kept_steps(monkeypatch, tmp_path, "accuracy", evaluations)[0] == [1, 3]


@pytest.mark.parametrize(
    ("metric", "value", "end"), [("accuracy", 1.0, 3), ("f1", 100.0, 3), ("accuracy", 0.5, None)]
)
def test_a_perfect_metric_whose_loss_falls_is_no_improvement(
    metric, value, end, monkeypatch, tmp_path
):
    notes = {}
    stop = EarlyStop(2)
    ends = None
    for step in range(1, 9):
        evaluation = ({"step": step}, {metric: value, "loss": 1 / step})
        written, best = kept_steps(monkeypatch, tmp_path, metric, [evaluation], notes=notes)
        assert (written, best["step"]) == ([step], step), "it is kept nevertheless"
        stop.count(step, notes, evaluation[1])
        if ends is None and stop.reason(notes):
            ends = step
            assert stop.reason(notes) == "no better evaluation in 2 since step 1"
    assert ends == end


def test_every_phase_starts_anew(monkeypatch, tmp_path):
    evaluations = [
        ({"step": 1, "phase": 1}, {"mlm_loss": 1.0}),
        ({"step": 2, "phase": 2}, {"mlm_loss": 5.0}),
        ({"step": 3, "phase": 2}, {"mlm_loss": 6.0}),
        ({"step": 4, "phase": 2}, {"mlm_loss": 4.0}),
    ]
    assert kept_steps(monkeypatch, tmp_path, "mlm_loss", evaluations)[0] == [1, 2, 4]


def test_without_evaluation_the_newest_is_kept_until_there_is_one(monkeypatch, tmp_path):
    evaluations = [({"step": 1}, {}), ({"step": 2}, {}), *lines("accuracy", [0, 0, 0.1, 0])[2:]]
    written, best = kept_steps(monkeypatch, tmp_path, "accuracy", evaluations)
    assert written == [1, 2, 3]
    assert best == {"step": 3, "accuracy": 0.1}


def test_a_resumed_run_compares_with_what_its_checkpoint_notes(monkeypatch, tmp_path):
    notes = {"best": {"step": 1, "accuracy": 0.5}}
    evaluations = lines("accuracy", [0, 0.4, 0.6])[1:]
    assert kept_steps(monkeypatch, tmp_path, "accuracy", evaluations, notes=notes)[0] == [3]


@pytest.mark.parametrize("writes", [True, False])
def test_a_resumed_run_without_its_best_model_keeps_the_next_one(writes, monkeypatch, tmp_path):
    notes = {"best": {"step": 1, "accuracy": 0.5}}
    written, best = kept_steps(
        *(monkeypatch, tmp_path / "best", "accuracy", lines("accuracy", [0, 0.4, 0.3])[1:]),
        notes=notes,
        writes=writes,
    )
    assert (written, best) == ([2] if writes else [], {"step": 2, "accuracy": 0.4})


def test_workers_that_only_train_along_note_the_best_but_write_nothing(monkeypatch, tmp_path):
    evaluations = lines("accuracy", [0.1, 0.2])
    written, best = kept_steps(monkeypatch, tmp_path, "accuracy", evaluations, writes=False)
    assert (written, best["step"]) == ([], 2)


@pytest.mark.parametrize(
    ("best", "metric", "words"),
    [
        (
            {"step": 6, "accuracy": 0.5},
            "accuracy",
            "the model of epoch 1.5 (step 6), with the highest accuracy: 0.5000",
        ),
        (
            {"step": 6, "phase": 2, "mlm_loss": 2.5},
            "mlm_loss",
            "the model of epoch 1.5 (step 6) of phase 2, with the lowest mlm_loss: 2.5000",
        ),
        (
            {"step": 6},
            "loss",
            "the model of the last epoch (step 6); there was no evaluation to choose by",
        ),
    ],
)
def test_words_on_the_best_model(best, metric, words):
    found = BestModel.of_notes({"best": best}, metric=metric, steps_per_epoch=4)
    assert str(found) == words


def test_words_on_a_model_that_the_loss_chose():
    best = {"step": 12, "accuracy": 0.9, "loss": 0.1}
    notes = {"best": best, "top": {"step": 4, "value": 0.95, "error": 0.06}}
    found = BestModel.of_notes(notes, metric="accuracy", steps_per_epoch=4)
    assert str(found.measured(25 / 27, 0.0504, 27)) == (
        "the model of epoch 3 (step 12), accuracy 0.926 ± 0.050, 27 rows: of those within the "
        "standard error of the highest, 0.9500 of epoch 1, it has the lowest loss"
    )
    alike = BestModel.of_notes(
        {**notes, "top": {**notes["top"], "value": 0.9}}, metric="accuracy", steps_per_epoch=4
    )
    assert str(alike.measured(0.9, 0.05, 27)) == (
        "the model of epoch 3 (step 12), with the highest accuracy: 0.900 ± 0.050, 27 rows"
    )


METRICS = st.lists(
    st.tuples(
        st.integers(0, 20).map(lambda right: right / 20),  # accuracy, with many ties
        st.integers(0, 6).map(float),  # loss
    ),
    min_size=1,
    max_size=12,
)


@given(values=METRICS, error=st.sampled_from([0.0, 0.05, 0.2, 1.0]))
def test_the_loss_decides_within_a_standard_error_of_the_best_metric(values, error):
    evaluations = [
        ({"step": step}, {"accuracy": accuracy, "loss": loss})
        for step, (accuracy, loss) in enumerate(values, 1)
    ]
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as place:
        notes = {}
        written, best = kept_steps(
            *(patch, Path(place), "accuracy", evaluations), notes=notes, errors={"accuracy": error}
        )
    assert written[-1] == best["step"]
    top = max(accuracy for accuracy, _ in values)
    assert notes["top"]["value"] == top
    assert best["accuracy"] >= top - error
    # Since the metric was that high for the first time, no model in reach had a lower loss.
    first = next(step for step, (accuracy, _) in enumerate(values) if accuracy == top)
    in_reach = [loss for accuracy, loss in values[first:] if accuracy >= top - error]
    assert best["loss"] <= min(in_reach)
    if not error:
        ranks = [rank(metrics, "accuracy") for _, metrics in evaluations]
        assert best["step"] == 1 + ranks.index(max(ranks))


def test_one_row_by_chance_keeps_no_model_that_has_hardly_begun_to_learn(monkeypatch, tmp_path):
    accuracies, losses = (1.0, 0.95, 0.95, 0.95, 0.95), (0.455, 0.3, 0.2, 0.1, 0.07)
    evaluations = [
        ({"step": step}, {"accuracy": accuracy, "loss": loss})
        for step, (accuracy, loss) in enumerate(zip(accuracies, losses, strict=True), 1)
    ]
    keep = functools.partial(kept_steps, monkeypatch, tmp_path, "accuracy", evaluations)
    assert keep()[0] == [1]
    assert keep(errors={"accuracy": 0.06})[0] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("losses", "end"),
    [
        ([1.0, 0.5, 0.9, 1.1, 0.4], 4),
        ([1.0, 0.5, 0.9, 0.99, 0.4], None),
        ([0.1, 0.3], 2),
        ([math.nan, 0.5, math.nan, 1.1], 4),
    ],
)
def test_a_loss_that_has_doubled_ends_a_run(losses, end, monkeypatch, tmp_path):
    notes, stop = {}, EarlyStop(0, loss_factor=2.0)
    reasons = {}
    for step, loss in enumerate(losses, 1):
        evaluation = ({"step": step}, {"accuracy": 0.5, "loss": loss})
        kept_steps(monkeypatch, tmp_path, "accuracy", [evaluation], notes=notes)
        stop.count(step, notes, evaluation[1])
        if stop.reason(notes):
            reasons[step] = stop.reason(notes)
    assert min(reasons, default=None) == end
    assert EarlyStop(0).reason(notes) is None
    if losses[0] == 1.0 and end:
        assert reasons[end] == (
            "the evaluation loss, 1.1000, is over 2 times its lowest, 0.5000 at step 2"
        )


def test_a_better_metric_goes_on_though_the_loss_has_doubled(monkeypatch, tmp_path):
    notes, stop = {}, EarlyStop(0, loss_factor=2.0)
    for step, loss in enumerate([0.1, 0.3, 0.5], 1):
        evaluation = ({"step": step}, {"accuracy": step / 10, "loss": loss})
        kept_steps(monkeypatch, tmp_path, "accuracy", [evaluation], notes=notes)
        stop.count(step, notes, evaluation[1])
        assert stop.reason(notes) is None


EVALUATED = {2: 3.0, 4: 1.0, 6: 2.0, 8: 1.5, 10: 0.5, 12: 0.4}


def evaluate(step, notes):
    loss = EVALUATED[step]
    if "best" not in notes or loss < notes["best"]["loss"]:
        notes["best"] = {"step": step, "loss": loss}
    return {"loss": loss}


def loop(limit, **keys):
    return make_loop(evaluate=evaluate, eval_every=2, early_stop_evals=limit, **keys)


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "end"), [(0, 12), (1, 6), (2, 8), (3, 12)])
def test_a_run_ends_after_so_many_evaluations_without_a_better_one(limit, end):
    result = loop(limit).run()
    assert result.step == end
    assert (result.stopped_early is None) == (end == 12)


@pytest.mark.slow
def test_the_reason_names_the_best_step():
    assert loop(2).run().stopped_early == "no better evaluation in 2 since step 4"


@pytest.mark.slow
def test_the_count_continues_in_a_resumed_run(tmp_path):
    run_until(loop(2, run_directory=tmp_path, steps_per_call=1), 7)
    assert loop(2, run_directory=tmp_path).run().step == 8
    again = loop(2, run_directory=tmp_path).run()
    assert (again.step, again.resumed_from) == (8, 8), "it is over"
