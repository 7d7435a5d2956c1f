"""The jobs `finetune` and `evaluate`: their files, counts, rejects and resumed runs."""

from __future__ import annotations

import dataclasses
import io
import json

import numpy as np
import pytest
from behavior.finetuning_runs import (
    NO_DROPOUT,
    VOCAB,
    CrashingConsole,
    check_rejects,
    make_config,
    quietly,
    write_inputs,
)
from safetensors.numpy import load_file

from bert_tf.base.checksums import read_sums
from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, TooManyRejects, UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import EvaluateConfig, ExportConfig
from bert_tf.engines.probes import PROBES
from bert_tf.engines.registry import ENGINES
from bert_tf.tasks.profile.profile import PROFILE, read_profile
from pipeline.jobs import evaluation, exporting, finetuning
from pipeline.outputs.job_spec import RunOptions
from pipeline.outputs.rejects import RejectLimit

pytestmark = pytest.mark.slow  # trains, and compiles the step each time

NUMBERED = {"header": False, "encoding": "latin-1", "text_column": "2", "label_column": "1"}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return write_inputs(tmp_path_factory.mktemp("finetuning"))


@pytest.fixture(scope="module")
def log():
    """Return the stream that the run of `finished` writes to."""
    return io.StringIO()


@pytest.fixture(scope="module")
def finished(place, log):
    config = make_config(place, "run")
    options = RunOptions(resume=True, console=Console(log), max_rejects=RejectLimit.parse("34%"))
    return config, finetuning.run(config, options)


@pytest.fixture(scope="module")
def extended(place):
    """Return a run of one epoch, chosen by its loss, before and after it gets another.

    What it says.
    """
    said, manifests = io.StringIO(), []
    config = make_config(place, "extended", **NO_DROPOUT)
    for epochs in (1.0, 2.0):
        config = dataclasses.replace(config, epochs=epochs, best_metric="loss", seed=-(2**70))
        manifests.append(finetuning.run(config, RunOptions(console=Console(said))))
    return config, *manifests, said.getvalue()


@pytest.fixture(scope="module")
def held_out(place):
    """Return the manifest of a run that holds out evaluation rows, and its output."""
    rows = place / "many.csv"
    cells = [f"{a} {b} {c} film,{b}" for a in VOCAB[5:] for b in VOCAB[5:7] for c in VOCAB[5:]]
    rows.write_text("\n".join(["text,label", *cells, ",good", ""]))
    config = dataclasses.replace(
        make_config(place, "held-out", **NO_DROPOUT),
        train=str(rows),
        eval=None,
        eval_fraction=0.3,
        epochs=3.0,
        early_stop_evals=2,
        best_metric="macro_f1",
    )
    said = io.StringIO()
    return finetuning.run(config, RunOptions(console=Console(said))), said.getvalue()


@pytest.fixture(scope="module")
def exported(place, finished):
    output = place / "exported"
    config = build_section(ExportConfig, {"run": str(place / "run"), "output": str(output)})
    exporting.run(config, quietly())
    return output


def losses(run):
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [(line["split"], line["step"], line["loss"]) for line in lines]


def test_the_run_directory_and_its_manifest(place, finished):
    _, manifest = finished
    counts = manifest["counts"]
    assert {name: counts[name] for name in ("rows_in", "rows_out", "rows_rejected", "steps")} == {
        "rows_in": 11,
        "rows_out": 8,
        "rows_rejected": 3,
        "steps": 10,
    }
    assert counts["rejected"] == {"too many cells": 1, "column 'text' is empty": 1, "not JSON": 1}
    assert counts["train"]["rows_in"] == 8
    assert manifest["task"]["labels"] == ["bad", "good"]
    assert manifest["next"].startswith("bert-pipeline export --run")
    rejects = (place / "run" / "rejects.jsonl").read_text().splitlines()
    assert [json.loads(line)["line"] for line in rejects] == [8, 9, 3]
    assert (place / "run" / "vocab.txt").read_text().split() == VOCAB
    assert [step for split, step, _ in losses(place / "run") if split == "eval"] == [2, 4, 6, 8, 10]


def test_a_finished_run_is_left_alone_and_another_config_refused(place, finished):
    config, _ = finished
    assert finetuning.run(config, quietly())["already_done"]
    with pytest.raises(UsageError, match="epochs: 5.0 then, 4.0 now, and it cannot be shortened"):
        finetuning.run(dataclasses.replace(config, epochs=4.0), quietly())
    with pytest.raises(UsageError, match=r"seed: 1 then, 2 now\);"):
        finetuning.run(dataclasses.replace(config, epochs=6.0, seed=2), quietly())


def test_more_epochs_extend_a_finished_run_of_any_whole_number_as_seed(extended):
    config, before, manifest, said = extended
    assert before["counts"]["steps"] == 2
    assert (manifest["counts"]["steps"], manifest["extended_from"]) == (4, [2])
    assert manifest["timings"]["total"] > manifest["timings"]["last_part"]
    assert manifest["config"]["epochs"] == 2.0
    assert "found a run with fewer epochs; extending it" in said
    assert finetuning.run(config, quietly())["already_done"]


def test_a_crashed_run_resumes_as_if_nothing_had_happened(place, finished):
    config = make_config(place, "crashed")
    with pytest.raises(MemoryError):
        finetuning.run(config, RunOptions(console=CrashingConsole(io.StringIO())))
    assert not (place / "crashed" / "manifest.json").exists()
    finetuning.run(config, quietly())
    assert losses(place / "crashed") == losses(place / "run")
    whole = load_file(place / "run" / "best" / "model.safetensors")
    resumed = load_file(place / "crashed" / "best" / "model.safetensors")
    for name, values in whole.items():
        np.testing.assert_array_equal(values, resumed[name], err_msg=name)


def test_evaluate_writes_metrics_and_predictions(place, finished):
    config = build_section(
        EvaluateConfig,
        {
            "model": str(place / "run"),
            "data": str(place / "eval.jsonl"),
            "output": str(place / "evaluated"),
        },
    )
    manifest = evaluation.run(config, quietly())
    metrics = json.loads((place / "evaluated" / "metrics.json").read_text())
    details = {name for name, value in metrics.items() if not isinstance(value, float)}
    assert details == {
        *("labels", "macro_average", "weighted_average", "confusion", "calibration", "ceiling"),
        "standard_errors",
    }
    assert metrics["ceiling"]["value"] == 1.0 and metrics["ceiling"]["rows"] == 2
    assert finished[1]["ceilings"].keys() == {"training", "evaluation"}
    assert manifest["metrics"] == {
        name: value for name, value in metrics.items() if name not in details
    }
    best = finished[1]["metrics"]["best"]
    of_run = json.loads((place / "run" / "metrics.json").read_text())
    assert {name: of_run[name] for name in manifest["metrics"]} == {
        name: best[name] for name in manifest["metrics"]
    }
    assert {name: of_run[name] for name in details - {"calibration"}} == {
        name: metrics[name] for name in details - {"calibration"}
    }
    assert metrics["accuracy"] == best["accuracy"]
    assert metrics["loss"] == pytest.approx(best["loss"], rel=1e-5)
    predictions = (place / "evaluated" / "predictions.jsonl").read_text().splitlines()
    assert [json.loads(line)["label"] for line in predictions] == ["bad", "good"]
    assert manifest["counts"]["rejected"] == {"not JSON": 1}
    assert len((place / "evaluated" / "rejects.jsonl").read_text().splitlines()) == 1


def test_evaluate_names_the_metric_that_chose_the_model(place, finished, exported, tmp_path):
    _, of_run = finished
    best = of_run["best_model"]
    assert best["metric"] == "accuracy" and best["value"] == of_run["metrics"]["best"]["accuracy"]
    for name, model in [("run", place / "run"), ("best", place / "run/best"), ("out", exported)]:
        log = io.StringIO()
        values = {
            "model": str(model),
            "data": str(place / "eval.jsonl"),
            "output": str(tmp_path / name),
        }
        options = RunOptions(console=Console(log))
        manifest = evaluation.run(build_section(EvaluateConfig, values), options)
        assert manifest["best_model"] == best
        line = f"{model}: the model of epoch {best['epoch']:g} (step {best['step']}), with the high"
        assert line in log.getvalue()


def test_the_model_keeps_a_profile_of_its_rows_and_no_texts(place, finished, exported):
    _, manifest = finished
    profile = read_profile(place / "run" / "best")
    assert profile.evaluation.rows == manifest["counts"]["eval"]["rows_out"]
    assert profile.evaluation.is_right.mean() == pytest.approx(
        manifest["metrics"]["best"]["accuracy"]
    )
    assert profile.texts is not None
    assert (exported / PROFILE).read_bytes() == (place / "run" / "best" / PROFILE).read_bytes()
    assert {PROFILE, PROBES} <= read_sums(exported).keys()
    page = (place / "run" / "report.html").read_text()
    assert "Accuracy by coverage" in page
    assert 'class="interval"' in page


def test_evaluate_without_a_decision(place, finished):
    values = {
        "model": str(place / "run"),
        "data": str(place / "eval.jsonl"),
        "output": str(place / "undecided"),
        "abstain_below": 1.0,
    }
    metrics = evaluation.run(build_section(EvaluateConfig, values), quietly())["metrics"]
    assert metrics["coverage"] == 0.0 and "selective_accuracy" not in metrics
    predictions = (place / "undecided" / "predictions.jsonl").read_text().splitlines()
    assert [json.loads(line)["predicted_label"] for line in predictions] == [None, None]


def test_rejected_rows_within_the_limit_are_reported(place, finished, log):
    """34%, of a training and an evaluation file each."""
    assert finished[1]["counts"]["rows_rejected"] == 3
    check_rejects(place, place / "run", log.getvalue())


@pytest.mark.parametrize("model", ["run", "exported"])
def test_the_ceiling_of_evaluation_rows_is_beside_their_metrics(place, finished, exported, model):
    """Three of four rows can be right: the same text has both labels."""
    rows, output = place / "two-labels.csv", place / f"ceiling-{model}"
    rows.write_text("text,label\nred,good\nred,good\nred,bad\nblue,bad\n")
    said = io.StringIO()
    values = {"model": place / model, "data": rows, "output": output}
    config = build_section(EvaluateConfig, {name: str(value) for name, value in values.items()})
    evaluation.run(config, RunOptions(console=Console(said)))
    ceiling = json.loads((output / "metrics.json").read_text())["ceiling"]
    assert (ceiling["metric"], ceiling["value"], ceiling["rows"]) == ("accuracy", 0.75, 4)
    (cause,) = ceiling["causes"]
    assert (cause["count"], cause["of"]) == (1, 4)
    assert cause["cause"] in said.getvalue()
    page = (output / "report.html").read_text()
    assert "of 0.7500 at best" in page and cause["cause"] in page
    with pytest.raises(InputError, match="two-labels.csv: accuracy can reach 0.75 at best: 1 of 4"):
        evaluation.run(
            dataclasses.replace(config, output=f"{output}-refused", min_ceiling=0.8), quietly()
        )
    assert not (place / f"ceiling-{model}-refused" / "metrics.json").exists()


@pytest.mark.parametrize("model", ["run", "run/best", "exported"])
def test_an_evaluation_on_training_rows_is_warned_about(place, finished, exported, model):
    for name, is_known in (("train.csv", True), ("eval.jsonl", False)):
        said = io.StringIO()
        output = place / f"known-{model.replace('/', '-')}-{is_known}"
        values = {"model": place / model, "data": place / name, "output": output}
        config = build_section(EvaluateConfig, {key: str(value) for key, value in values.items()})
        manifest = evaluation.run(config, RunOptions(console=Console(said)))
        assert ("the model was trained on these rows" in said.getvalue()) == is_known
        assert any("trained on these" in note for note in manifest.get("notes", [])) == is_known


@pytest.mark.parametrize("model", ["run", "exported"])
def test_too_many_rejected_rows_end_an_evaluation_before_the_model_runs(
    place, finished, exported, model
):
    output = place / f"refused-{model}"
    values = {"model": place / model, "data": place / "eval.jsonl", "output": output}
    config = build_section(EvaluateConfig, {name: str(value) for name, value in values.items()})
    options = RunOptions(console=Console(io.StringIO()), max_rejects=RejectLimit.parse("0.1"))
    with pytest.raises(TooManyRejects, match="1 of 3 rows rejected.* allows: 1 × not JSON"):
        evaluation.run(config, options)
    assert (output / "rejects.jsonl").read_text().count("not JSON") == 1
    assert not (output / "metrics.json").exists()


@pytest.mark.parametrize("metric", ["accuracy", "loss", "macro_f1"])
def test_the_best_model_is_that_of_the_metric(place, finished, log, extended, held_out, metric):
    name, manifest, said = {
        "accuracy": ("run", finished[1], log.getvalue()),
        "loss": ("extended", *extended[2:]),
        "macro_f1": ("held-out", *held_out),
    }[metric]
    lines = [json.loads(line) for line in (place / name / "metrics.jsonl").read_text().splitlines()]
    values = {line["step"]: line[metric] for line in lines if line["split"] == "eval"}
    best = manifest["best_model"]
    extreme = min if metric == "loss" else max
    assert len(values) > 1
    assert best["value"] == values[best["step"]]
    distance = abs(best["value"] - extreme(values.values()))
    assert distance <= (best["error"] or 0.0), "within the standard error of the best"
    assert (best["metric"], best["epoch"]) == (metric, best["step"] / min(values))
    assert manifest["metrics"]["best"]["step"] == best["step"]
    how = "lowest" if metric == "loss" else "highest"
    line = f"the model of epoch {best['epoch']:g} (step {best['step']}), with the {how} {metric}: "
    assert line in said or f"of those within the standard error of the {how}, " in said


def test_without_a_file_for_evaluation_rows_are_held_out(held_out):
    manifest, _ = held_out
    counts = manifest["counts"]
    assert (counts["rows_in"], counts["rows_out"], counts["rows_rejected"]) == (51, 50, 1)
    assert counts["train"]["rows_out"] + counts["eval"]["rows_out"] == 50
    assert counts["train"]["rows_cut"] == counts["train"]["tokens_lost"] == 0
    assert manifest["eval_rows"].startswith("0.3 of the training rows, held out by a hash")
    assert manifest["best_model"]["metric"] == "macro_f1"
    assert manifest["metrics"]["best"]["macro_f1"] == manifest["best_model"]["value"]


@pytest.mark.parametrize("model", ["run", "exported"])
def test_rows_without_a_header_are_measured_on_by_number(place, finished, exported, model):
    rows = place / "rows.csv"
    rows.write_bytes("good,film café\nbad,red film\n".encode("latin-1"))
    values = {"model": str(place / model), "data": str(rows), "output": str(place / f"n-{model}")}
    manifest = evaluation.run(build_section(EvaluateConfig, {**values, **NUMBERED}), quietly())
    assert (manifest["counts"]["rows_in"], manifest["counts"]["rows_rejected"]) == (2, 0)


def test_resuming_without_a_checkpoint_is_reported(finished, log):
    assert "no checkpoint to resume from; starting at step 0" in log.getvalue()


def test_no_engine_runs_a_run_directory(place, tmp_path):
    files = {"model": str(place / "init"), "data": str(place / "eval.jsonl")}
    given = {**files, "output": str(tmp_path / "measured"), "engine": "tensorflow"}
    with pytest.raises(
        UsageError, match="--engine tensorflow: .*init is not an exported model, so"
    ):
        evaluation.run(build_section(EvaluateConfig, given), quietly())
    assert not (tmp_path / "measured").exists()


@pytest.mark.parametrize("engine", ["tensorflow", "openvino"])
def test_an_exported_model_is_measured_like_its_run(engine, place, finished, exported):
    for package in ENGINES[engine].packages:
        pytest.importorskip(package)
    output = place / f"exported-evaluated-{engine}"
    values = {"model": str(exported), "data": str(place / "eval.jsonl"), "output": str(output)}
    config = build_section(EvaluateConfig, {**values, "engine": engine})
    manifest = evaluation.run(config, quietly())
    best = finished[1]["metrics"]["best"]
    assert manifest["metrics"] == {
        name: best[name] for name in ("accuracy", "macro_f1", "matthews_correlation")
    }
    rows = [json.loads(line) for line in (output / "predictions.jsonl").read_text().splitlines()]
    assert manifest["engine"] == manifest["config"]["engine"] == engine
    assert [row["line"] for row in rows] == [1, 2]
    assert all(0.5 <= row["predicted_score"] <= 1 for row in rows)
    assert manifest["counts"]["rows_rejected"] == 1
