"""Variables of the environment stand between the YAML file and `--set`."""

import pytest

from bert_tf.base.errors import ConfigError
from bert_tf.config.resolve import Variants, resolve
from bert_tf.config.sections import FinetuneConfig, ScoreConfig, TrainConfig
from bert_tf.tasks.registry import TASKS

FLAGS = {"data": "data", "output": "run", "size": "tiny"}


def test_they_beat_the_file_and_lose_to_the_command_line(tmp_path, monkeypatch):
    path = tmp_path / "run.yaml"
    path.write_text("train:\n  steps: 1\n  batch_size: 2\n  seed: 3\n  warmup_steps: 4\n")
    for key in ("STEPS", "BATCH_SIZE", "SEED"):
        monkeypatch.setenv(f"BERT_PIPELINE_TRAIN_{key}", "50")
    config = resolve(
        TrainConfig,
        config_file=str(path),
        assignments=("train.batch_size=20",),
        flags={**FLAGS, "seed": "300"},
    )
    assert (config.steps, config.batch_size, config.seed) == (50, 20, 300)
    assert config.warmup_steps == 4


def test_a_variable_chooses_the_task_whose_options_are_read(tmp_path, monkeypatch):
    sections = {name: task.options for name, task in TASKS.items()}
    tasks = Variants(common=FinetuneConfig, key="task", sections=sections)
    path = tmp_path / "run.yaml"
    path.write_text("finetune: {task: classification, train: t, init: m, output: o}\n")
    monkeypatch.setenv("BERT_PIPELINE_FINETUNE_TASK", "qa")
    config = tasks.resolve(config_file=str(path), flags={})
    assert (type(config), config.task) == (sections["qa"], "qa")
    config = tasks.resolve(config_file=str(path), flags={"task": "tagging"})
    assert (type(config), config.task) == (sections["tagging"], "tagging")


def test_empty_variables_and_those_of_other_sections_mean_nothing(monkeypatch):
    monkeypatch.setenv("BERT_PIPELINE_TRAIN_STEPS", "")
    monkeypatch.setenv("BERT_PIPELINE_SCORE_ENGINE", "onnxruntime")
    monkeypatch.setenv("BERT_PIPELINE_TRACEBACK", "1")
    assert resolve(TrainConfig, flags=FLAGS) == resolve(TrainConfig, flags=FLAGS)
    assert resolve(ScoreConfig, flags={"input": "a", "output": "b", "model": "m"}).engine == (
        "onnxruntime"
    )


def test_variables_of_another_task_are_left_alone(monkeypatch):
    monkeypatch.setenv("BERT_PIPELINE_TRAIN_DOC_STRIDE", "64")
    assert resolve(TrainConfig, flags=FLAGS, others={"doc_stride": "qa"})


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("BERT_PIPELINE_TRAIN_STEPS", "ten", "BERT_PIPELINE_TRAIN_STEPS: expected an integer"),
        (
            "BERT_PIPELINE_TRAIN_STEP",
            "10",
            "BERT_PIPELINE_TRAIN_STEP: train has no key 'step'; "
            "did you mean BERT_PIPELINE_TRAIN_STEPS?",
        ),
    ],
)
def test_wrong_variables_are_named(monkeypatch, variable, value, message):
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError) as caught:
        resolve(TrainConfig, flags=FLAGS)
    assert message in str(caught.value)
    assert len(caught.value.faults) == 1
