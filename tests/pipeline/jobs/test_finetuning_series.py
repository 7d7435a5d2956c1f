"""Several fine-tunings in one command."""

import csv
import dataclasses
import io
import json
import math
from pathlib import Path

import numpy as np
import pytest
from behavior.finetuning_runs import NO_DROPOUT
from behavior.small_models import write_encoder
from safetensors.numpy import load_file

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import ExportConfig
from bert_tf.tasks.registry import finetune_config
from pipeline.jobs import exporting, finetuning
from pipeline.jobs.finetuning_series import SeriesRun, best_of, combinations, series_table
from pipeline.outputs.job_spec import RunOptions

WORDS = ["good", "bad", "film", "red", "blue"]
RATES = (1e-4, 1e-2)


def run_of(rate, seed, **metrics):
    manifest = {"metrics": {"best": {"step": 3, **metrics}}}
    return SeriesRun(settings={"rate": rate}, seed=seed, path=None, manifest=manifest)


def test_the_best_mean_decides_and_then_the_best_run():
    """One lucky seed does not choose the settings."""
    found = combinations(
        [
            run_of(1, 1, f1=0.9, loss=1.0),
            run_of(1, 2, f1=0.2, loss=1.0),
            run_of(2, 1, f1=0.7, loss=0.8),
            run_of(2, 2, f1=0.7, loss=0.6),
        ]
    )
    assert [each.mean()["f1"] for each in found] == pytest.approx([0.55, 0.7])
    assert found[0].deviation()["f1"] == pytest.approx(np.std([0.9, 0.2], ddof=1))
    chosen, best = best_of(found, "f1")
    assert (chosen.settings, best.seed) == ({"rate": 2}, 2)  # by the loss among equals
    assert best_of(found, "loss")[1].seed == 2
    assert series_table(found, ["f1"]) == [
        "  settings  seeds  f1",
        "  rate 1    2      0.5500 ± 0.4950",
        "  rate 2    2      0.7000 ± 0.0000",
    ]


def test_a_single_run_has_no_deviation():
    (only,) = combinations([run_of(1, 1, f1=0.9)])
    assert only.deviation() == {"f1": None}
    assert series_table([only], ["f1"])[1].split() == ["rate", "1", "1", "0.9000"]


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    place = tmp_path_factory.mktemp("series")
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    write_encoder(place / "init", vocab=vocab, seed=5, **NO_DROPOUT)
    rows = [f"{a} {b} {c},{b}" for a in WORDS for b in WORDS[:2] for c in WORDS]
    (place / "train.csv").write_text("\n".join(["text,label", *rows, ""]))
    return finetune_config(
        {
            "task": "classification",
            "train": str(place / "train.csv"),
            "eval_fraction": 0.3,
            "init": str(place / "init"),
            "output": str(place / "series"),
            "precision": "float32",
            "epochs": 2,
            "batch_size": 8,
            "max_seq_length": 16,
            "seeds": 2,
            "grid": "learning_rate=" + ",".join(map(str, RATES)),
        }
    )


def options():
    return RunOptions(console=Console(io.StringIO()))


@pytest.mark.slow  # trains five times
def test_an_interrupted_series_is_finished_and_used_like_a_run(config, tmp_path, monkeypatch):
    made = []
    alone = finetuning.finetune

    def interrupted(single, *others, **more):
        if len(made) == 2:
            raise KeyboardInterrupt
        made.append((single.learning_rate, single.seed))
        return alone(single, *others, **more)

    monkeypatch.setattr(finetuning, "finetune", interrupted)
    with pytest.raises(KeyboardInterrupt):
        finetuning.run(config, options())
    monkeypatch.setattr(
        finetuning,
        "finetune",
        lambda single, *others, **more: (
            made.append((single.learning_rate, single.seed)) or alone(single, *others, **more)
        ),
    )
    shown = io.StringIO()
    manifest = finetuning.run(config, RunOptions(console=Console(shown)))
    next_commands = [line for line in shown.getvalue().splitlines() if line.startswith("next: ")]
    assert len(next_commands) == 1, "that of the series"
    # The model of so few rows may be no better than its baseline: then it is not to be exported.
    assert f"--run {config.output} " in next_commands[0] or "init " in next_commands[0]
    assert made == [(rate, seed) for rate in RATES for seed in (1, 2)], "each once"
    assert finetuning.run(config, options())["already_done"]

    runs = manifest["runs"]
    assert [(run["settings"]["learning_rate"], run["seed"]) for run in runs] == made
    output = Path(config.output)
    with (output / "runs.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [float(row["accuracy"]) for row in rows] == [run["metrics"]["accuracy"] for run in runs]
    best = next(run for run in runs if run["path"] == manifest["best_run"])
    means = [np.mean([run["metrics"]["accuracy"] for run in runs[i : i + 2]]) for i in (0, 2)]
    assert manifest["metrics"]["mean"]["accuracy"] == pytest.approx(max(means))
    assert best["metrics"]["accuracy"] == manifest["metrics"]["best"]["accuracy"]
    assert math.isfinite(manifest["metrics"]["deviation"]["accuracy"])
    kept, own = (
        load_file(place / "best" / "model.safetensors")
        for place in (output, output / manifest["best_run"])
    )
    assert kept.keys() == own.keys()
    assert all(np.array_equal(kept[name], own[name]) for name in kept)
    assert not list(output.glob("**/checkpoints"))
    assert json.loads((output / "metrics.json").read_text())["loss"] == best["metrics"]["loss"]

    alike = dataclasses.replace(
        config, grid=None, seeds=1, learning_rate=RATES[0], output=str(tmp_path / "alone")
    )
    single = finetuning.run(alike, options())
    assert single["metrics"]["best"] == {"step": single["best_model"]["step"], **runs[0]["metrics"]}

    exported = {"run": config.output, "output": str(tmp_path / "exported"), "format": "huggingface"}
    exporting.run(build_section(ExportConfig, exported), options())
    card = (tmp_path / "exported" / "README.md").read_text()
    assert "Mean over 2 seeds, ± standard deviation: loss " in card

    with pytest.raises(UsageError, match="epochs: 2.0 then, 3.0 now"):
        finetuning.run(dataclasses.replace(config, epochs=3.0), options())


def tagged(number):
    words = [WORDS[number % 5], WORDS[(number // 5 + 1) % 5], WORDS[number % 3]]
    tags = ["B-COLOR" if word in ("red", "blue") else "O" for word in words]
    return {"tokens": words, "tags": tags}


def choices(number):
    texts = [WORDS[(number + place) % 5] for place in range(2 + number % 2)]
    return {"context": f"film {WORDS[number % 5]}", "choices": texts, "label": number % len(texts)}


@pytest.mark.slow  # trains twice each
@pytest.mark.parametrize(
    ("task", "row", "metric"),
    [("tagging", tagged, "f1"), ("multiple-choice", choices, "accuracy")],
)
def test_tasks_without_a_label_per_row_have_grids_and_held_out_rows(
    task, row, metric, config, tmp_path
):
    lines = [json.dumps(row(number)) for number in range(60)]
    (tmp_path / "rows.jsonl").write_text("\n".join([*lines, ""]))
    series = finetune_config(
        {
            "task": task,
            "train": str(tmp_path / "rows.jsonl"),
            "eval_fraction": 0.3,
            "init": config.init,
            "output": str(tmp_path / "series"),
            "precision": "float32",
            "epochs": 1,
            "batch_size": 8,
            "max_seq_length": 16,
            "grid": "learning_rate=1e-4,1e-2",
        }
    )
    manifest = finetuning.run(series, options())
    assert len(manifest["runs"]) == 2
    best = max(run["metrics"][metric] for run in manifest["runs"])
    assert manifest["metrics"]["best"][metric] == best
    counts = manifest["counts"]
    assert counts["train"]["rows_out"] + counts["eval"]["rows_out"] == 60
    assert 10 <= counts["eval"]["rows_out"] <= 30
    assert (tmp_path / "series" / "report.html").is_file()
