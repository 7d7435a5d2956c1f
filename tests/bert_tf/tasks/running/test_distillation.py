"""Fine-tuning with a teacher."""

import dataclasses
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from behavior.rounding import rounding
from safetensors.numpy import load_file

from bert_tf.base.console import Console
from bert_tf.base.errors import ConfigError, UsageError
from bert_tf.tasks.running import distillation
from bert_tf.tasks.running.finetuning import finetune
from bert_tf.training.loop import TrainingLoop
from pipeline.jobs import finetuning
from pipeline.outputs.job_spec import RunOptions

pytestmark = pytest.mark.slow  # trains

LABELED = [("the good film", "good"), ("a bad film", "bad")] * 4
UNLABELED = ["a red city", "the red film", "a blue city", "the blue film"] * 4


def write(path, header, rows):
    path.write_text("\n".join([header, *(",".join(row) for row in rows), ""]))
    return str(path)


@pytest.fixture
def train(tmp_path):
    return write(tmp_path / "train.csv", "text,label", LABELED)


@pytest.fixture
def config(small_config, tmp_path, train):
    """Return a function that makes the config of a student; `output` names its folder."""

    def make(output, **values):
        defaults = {"task": "classification", "train": train, "eval": train, "epochs": 2}
        return small_config(**{**defaults, "output": str(tmp_path / output), **values})

    return make


@pytest.fixture(scope="module")
def teacher(config_of, tmp_path_factory):
    """It knows that red is good and blue is bad, and has its labels in another order."""
    folder = tmp_path_factory.mktemp("teacher")
    colors = [(text, "good" if "red" in text else "bad") for text in UNLABELED]
    rows = write(folder / "teacher.csv", "text,label", [*LABELED, *colors] * 4)
    values = {"task": "classification", "train": rows, "eval": rows, "epochs": 3}
    finetune(config_of(output=str(folder / "run"), **values), Console(io.StringIO()))
    return str(folder / "run")


def training_lines(run):
    lines = [json.loads(line) for line in (Path(run) / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if line["split"] == "train"]


def test_a_teacher_without_weight_changes_nothing(config, teacher, quiet_console):
    """Only the loss is rounded otherwise. AdamW would hide a gradient of another scale."""
    values = {"epochs": 3, "log_every": 1}
    alone = config("alone", **values)
    taught = config("taught", teacher=teacher, distill_weight=0.0, **values)
    finetune(alone, quiet_console)
    finetune(taught, quiet_console)
    one, other = training_lines(alone.output), training_lines(taught.output)
    assert len(one) == len(other) > 1
    for plain, line in zip(one, other, strict=True):
        assert line["step"] == plain["step"]
        assert line["teacher_loss"] == 0
        # The steps so far, each with some 500 summands there and back.
        tolerance = rounding("float32", 500 * plain["step"])
        assert line["label_loss"] == pytest.approx(plain["loss"], rel=tolerance)
        assert line["gradient_norm"] == pytest.approx(plain["gradient_norm"], rel=tolerance)


def test_rows_without_labels_are_learned_from_the_teacher(config, teacher, tmp_path):
    """Only the teacher knows the meaning of red and blue."""
    unlabeled = write(tmp_path / "texts.csv", "text", [[text] for text in [*UNLABELED, '""']])
    colors = [("red red film", "good"), ("a blue blue city", "bad"), ("red city", "good")]
    test = write(tmp_path / "test.csv", "text,label", colors)
    shown = io.StringIO()
    student = config(
        "student", teacher=teacher, unlabeled=unlabeled, eval=test, epochs=12, distill_weight=0.8
    )
    manifest = finetuning.run(student, RunOptions(console=Console(shown)))
    assert manifest["metrics"]["best"]["accuracy"] == 1.0
    assert manifest["counts"]["unlabeled"] == {"rows_in": 17, "rows_out": 16, "rows_rejected": 1}
    assert manifest["counts"]["rejected"] == {"column 'text' is empty": 1}
    assert {entry["key"] for entry in manifest["inputs"]} >= {"teacher", "unlabeled"}
    assert "without labels: 16 rows" in shown.getvalue()
    last = training_lines(tmp_path / "student")[-1]
    assert last["loss"] == pytest.approx(last["label_loss"] + last["teacher_loss"], rel=1e-4)


class Prepared(Exception):
    """Stands for the training."""


def test_logits_are_kept_for_the_same_rows_and_the_same_teacher(
    config, teacher, train, tmp_path, monkeypatch, quiet_console
):
    teacher = str(shutil.copytree(teacher, tmp_path / "teacher"))
    computed, used = [], []
    for name, returned in (("_computed", computed), ("_logits", used)):
        method = getattr(distillation.SoftLabels, name)

        def noting(*args, method=method, returned=returned):
            returned.append(method(*args))
            return returned[-1]

        monkeypatch.setattr(distillation.SoftLabels, name, noting)
    student = config("student", teacher=teacher, epochs=1)

    def prepare(config):
        """All that comes before the first step."""
        with monkeypatch.context() as patch, pytest.raises(Prepared):
            patch.setattr(TrainingLoop, "run", stop)
            finetune(config, quiet_console)

    def stop(self):
        raise Prepared

    prepare(student)
    prepare(dataclasses.replace(student, epochs=2))
    assert (len(computed), len(used)) == (1, 2)
    kept = load_file(f"{student.output}/teacher/logits.safetensors")["logits"]
    assert kept.shape == (len(LABELED), 2) and kept.dtype == np.float32
    for logits in (kept, *used):
        np.testing.assert_array_equal(logits, computed[0], strict=True)
    # Labels are sorted: bad, good.
    right = [int(label == "good") for _, label in LABELED]
    assert kept.argmax(axis=1).tolist() == right
    again = config("student", teacher=teacher, epochs=3)
    (Path(teacher) / "best" / "NOTES").write_text("another teacher")
    prepare(again)
    assert len(computed) == 2
    damaged = Path(student.output) / "teacher" / "logits.safetensors"
    content = damaged.read_bytes()
    damaged.write_bytes(content[:-9])
    prepare(dataclasses.replace(student, epochs=4))
    assert len(computed) == 3 and damaged.read_bytes() == content


@pytest.mark.parametrize("task", ["multilabel", "regression"])
def test_other_tasks_have_teachers_too(task, config, tmp_path, quiet_console):
    labels = {"good": "1.5", "bad": "-0.5"} if task == "regression" else {}
    rows = [(text, labels.get(label, label)) for text, label in LABELED]
    train = write(tmp_path / "rows.csv", "text,label", rows * 20)
    evaluation = write(tmp_path / "eval.csv", "text,label", rows)
    common = {"task": task, "train": train, "eval": evaluation, "epochs": 2}
    finetune(config("first", **common), quiet_console)
    taught = config("second", **common, teacher=str(tmp_path / "first"), distill_weight=1.0)
    best = finetune(taught, quiet_console).best
    assert best["r2" if task == "regression" else "micro_f1"] > 0.9


def test_what_cannot_be_a_teacher_is_refused(config, teacher, tmp_path, quiet_console):
    other = write(tmp_path / "other.csv", "text,label", [("a film", "x"), ("a city", "y")] * 4)
    with pytest.raises(UsageError, match=r"--teacher .*: knows the labels 'bad', 'good', the tra"):
        finetune(config("a", train=other, eval=other, teacher=teacher), quiet_console)
    numbers = write(tmp_path / "numbers.csv", "text,label", [("a film", "1"), ("a city", "2")] * 4)
    with pytest.raises(UsageError, match=r"was fine-tuned for classification; a teacher for regre"):
        finetune(
            config("b", task="regression", train=numbers, eval=numbers, teacher=teacher),
            quiet_console,
        )
    with pytest.raises(ConfigError, match="unlabeled: such rows are learned from a teacher"):
        config("c", unlabeled="texts.csv")
