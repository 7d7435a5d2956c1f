"""Values that a fine-tuning chooses by its rows: stored, taken over, told from given ones."""

from __future__ import annotations

import dataclasses
import io
import json

import pytest
import yaml
from behavior.finetuning_runs import NO_DROPOUT, ROWS, VOCAB, CrashingConsole
from behavior.small_models import write_encoder

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.base.json_files import read_sealed, sealed
from bert_tf.tasks.registry import finetune_config
from bert_tf.tasks.running import recipe
from bert_tf.training.best_model import BestModel
from pipeline.jobs import finetuning
from pipeline.outputs.job_spec import RunOptions

pytestmark = pytest.mark.slow  # trains, and compiles the step each time

CHOSEN = {"epochs": 20, "batch_size": 16, "learning_rate": 3e-4, "early_stop_loss": 2.0}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("choices")
    write_encoder(place / "init", vocab=VOCAB, seed=5, initializer_range=0.1)
    (place / "train.csv").write_text(ROWS)
    (place / "eval.csv").write_text(ROWS)
    return place


def config_of(place, output, **given):
    return finetune_config(
        {
            "task": "classification",
            "train": str(place / "train.csv"),
            "eval": str(place / "eval.csv"),
            "init": str(place / "init"),
            "output": str(place / output),
            "precision": "float32",
            "max_seq_length": 16,
            **NO_DROPOUT,
            "log_every": 1,
            "checkpoint_every": 4,
            "checkpoint_minutes": 0,
            "report_to": [],
            **given,
        },
    )


def train(config, console=None):
    console = Console(io.StringIO()) if console is None else console
    return finetuning.run(config, RunOptions(console=console))


def chosen_of(config):
    return {key: config[key] for key in CHOSEN}


@pytest.fixture(scope="module")
def whole(place):
    config = config_of(place, "whole")
    return config, train(config)


def test_what_is_chosen_is_stored_like_given_values(place, whole):
    config, manifest = whole
    assert chosen_of(manifest["config"]) == CHOSEN
    assert sorted(manifest["chosen"]) == sorted(CHOSEN)
    assert manifest["counts"]["steps"] == 20
    marked = yaml.safe_load((place / "whole" / "config.yaml").read_text())
    assert chosen_of(marked["finetune"]) == CHOSEN
    assert train(config)["already_done"]
    assert train(dataclasses.replace(config, **CHOSEN))["already_done"]
    with pytest.raises(UsageError, match=r"epochs: 20 then, 3 now, and it cannot be shortened"):
        train(dataclasses.replace(config, epochs=3))


def test_a_resumed_run_keeps_what_it_chose_whatever_would_be_chosen_now(place, whole, monkeypatch):
    config = config_of(place, "crashed")
    with pytest.raises(MemoryError):
        train(config, CrashingConsole(io.StringIO()))
    monkeypatch.setattr(recipe, "_MOST_EPOCHS", 5)
    manifest = train(config)
    assert chosen_of(manifest["config"]) == CHOSEN
    assert manifest["chosen"] == whole[1]["chosen"]
    runs = [
        (place / name / "metrics.jsonl").read_text().splitlines() for name in ("crashed", "whole")
    ]
    steps = [[(line["step"], line["loss"]) for line in map(json.loads, lines)] for lines in runs]
    assert steps[0] == steps[1]
    more = train(dataclasses.replace(config, epochs=21.0))
    assert more["counts"]["steps"] == 21
    assert sorted(more["chosen"]) == ["batch_size", "early_stop_loss", "learning_rate"]


def test_a_run_of_a_release_that_chose_nothing_has_the_defaults_of_then(place):
    former = {"epochs": 3.0, "batch_size": 32, "learning_rate": 5e-5, "early_stop_loss": 0.0}
    train(config_of(place, "former", **former))
    open_config = config_of(place, "former")
    with pytest.raises(UsageError, match=r"epochs: 3.0 then, chosen by the job now[;)]"):
        train(open_config)  # of this release, which was given these values
    path = place / "former" / "manifest.json"
    manifest = read_sealed(path)
    del manifest["chosen"], manifest["config"]["early_stop_loss"]
    path.write_text(sealed(manifest))
    assert train(open_config)["already_done"]
    assert train(config_of(place, "former", **former))["already_done"]
    assert train(dataclasses.replace(open_config, epochs=4.0))["counts"]["steps"] == 4


def test_each_run_of_a_series_chooses(place):
    config = config_of(place, "series", seeds=1, grid="batch_size=2,4", epochs=1)
    manifest = train(config)
    folders = [place / "series" / each["path"] for each in manifest["runs"]]
    configs = [read_sealed(folder / "manifest.json")["config"] for folder in folders]
    assert {(each["batch_size"], each["learning_rate"]) for each in configs} == {
        (2, 3e-4),
        (4, 3e-4),
    }
    assert train(config)["already_done"]
    assert len(train(dataclasses.replace(config, seeds=2))["runs"]) == 4


def test_a_model_no_better_than_the_most_frequent_label_is_not_to_be_exported(place):
    said = io.StringIO()
    config = config_of(place, "useless", learning_rate=1e-12, epochs=2, seeds=2)
    series = train(config, Console(said))
    run = read_sealed(place / "useless" / series["runs"][0]["path"] / "manifest.json")
    assert run["baseline"]["value"] == run["baseline"]["baseline"] == 0.5
    for manifest in (series, run):
        assert manifest["baseline"]["is_better"] is False
        assert manifest["next"] == (
            f"bert-pipeline init classification --from {config.train} --init {config.init}"
        )
    (note,) = (note for note in run["notes"] if "the model is of no use" in note)
    assert "is no better than always predicting 'bad' (0.500)" in note
    assert note in said.getvalue()


def test_metrics_have_their_standard_errors(place, whole):
    manifest = whole[1]
    metrics = json.loads((place / "whole" / "metrics.json").read_text())
    right = metrics["accuracy"]
    assert 0 < right < 1
    assert metrics["standard_errors"]["accuracy"] == pytest.approx((right * (1 - right) / 6) ** 0.5)
    best = manifest["best_model"]
    assert (best["error"], best["rows"]) == (metrics["standard_errors"]["accuracy"], 6)
    shown = f"{right:.3f} ± {best['error']:.3f}, 6 rows"
    assert shown in str(BestModel.of_manifest(manifest))
