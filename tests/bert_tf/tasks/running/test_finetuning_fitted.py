"""Values that a task fits on its evaluation rows are kept and measured with the best model."""

import dataclasses
import json

import numpy as np
import pytest
from behavior.toy_regression import REGRESSION, RegressionTask

from bert_tf.config.section import build_section
from bert_tf.config.sections import EvaluateConfig
from bert_tf.tasks.registry import TASKS
from bert_tf.tasks.running.evaluation import evaluate
from bert_tf.tasks.running.finetuning import finetune

pytestmark = pytest.mark.slow  # trains for some epochs

SHIFTED = dataclasses.replace(REGRESSION, name="shifted", implementation=f"{__name__}:ShiftedTask")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShiftedTask(RegressionTask):
    """Adds the mean error on the evaluation rows."""

    declaration = SHIFTED

    shift: float = 0.0

    def fitted(self, data, reduced):
        errors = self.gold(data.source) - super().predictions(reduced["logits"])["predicted_value"]
        return dataclasses.replace(self, shift=float(errors.mean()))

    def predictions(self, logits):
        return {"predicted_value": super().predictions(logits)["predicted_value"] + self.shift}

    def served_predictions(self, logits):
        return {
            "predicted_value": super().served_predictions(logits)["predicted_value"] + self.shift
        }


@pytest.fixture
def config(small_config, tmp_path, monkeypatch):
    monkeypatch.setitem(TASKS, SHIFTED.name, SHIFTED)
    rows = "text,label\nthe good film,3\nbad film,-1\nthe city,2\na bad city,0\n"
    for name in ("train", "eval"):
        (tmp_path / f"{name}.csv").write_text(rows)
    paths = {name: str(tmp_path / f"{name}.csv") for name in ("train", "eval")}
    return small_config(task="shifted", **paths, epochs=3, batch_size=2)


def measured(path, config, console):
    values = {"model": str(path), "data": config.eval, "output": "x"}
    _, _, results = evaluate(build_section(EvaluateConfig, values), console)
    return results


def test_the_best_epoch_keeps_its_fit(config, tmp_path, quiet_console):
    result = finetune(config, quiet_console)
    kept = json.loads((tmp_path / "run" / "best" / "task.json").read_text())
    assert kept == result.task.settings()
    assert kept["shift"] != 0.0
    results = measured(tmp_path / "run", config, quiet_console)
    assert results.metrics["r2"] == pytest.approx(result.best["r2"], abs=1e-6)
    errors = [row["predicted_value"] - row["label"] for row in results.predictions]
    assert np.mean(errors) == pytest.approx(0, abs=1e-5)


def test_the_fit_after_training_in_bfloat16_is_that_of_float32(config, tmp_path, quiet_console):
    """It is the one that `evaluate` and exported models compute; bfloat16 has 3 digits."""
    result = finetune(dataclasses.replace(config, precision="bfloat16"), quiet_console)
    kept = json.loads((tmp_path / "run" / "best" / "task.json").read_text())
    assert kept == result.task.settings()
    results = measured(tmp_path / "run", config, quiet_console)
    errors = [row["predicted_value"] - row["label"] for row in results.predictions]
    assert np.mean(errors) == pytest.approx(0, abs=1e-5)
    assert results.metrics["loss"] == pytest.approx(result.best["loss"], rel=1e-5)


def test_a_resumed_run_knows_the_fit_of_its_best_epoch(config, quiet_console):
    first = finetune(config, quiet_console)
    again = finetune(config, quiet_console)
    assert again.training.step == first.training.step
    assert again.task == first.task


def test_without_evaluation_rows_nothing_is_fitted(config, quiet_console):
    result = finetune(dataclasses.replace(config, eval=None, eval_fraction=0.0), quiet_console)
    assert result.task.shift == 0.0
