"""The models that fill masks, and the settings that an exported one keeps."""

import dataclasses
import json

import pytest

from bert_tf.base.errors import UsageError
from bert_tf.config.resolve import Variants
from bert_tf.config.section import build_section
from bert_tf.config.sections import ExportConfig
from bert_tf.export.loading import directory_for_task
from bert_tf.tasks.base.declaration import PredictionField
from bert_tf.tasks.fill_mask.declaration import FillMaskConfig, mask_fault
from bert_tf.tasks.registry import (
    TASKS,
    pretrained_tasks,
    served_task_from_settings,
    task_from_settings,
)
from bert_tf.weights.model_directory import read_model_directory


def config(**values):
    return build_section(
        FillMaskConfig, {"run": "model", "output": "out", "task": "fill-mask", **values}
    )


def test_the_task_comes_back_from_its_settings(trained):
    settings = json.loads(json.dumps(trained.task.settings()))
    assert served_task_from_settings(settings, "m") == trained.task
    assert settings["top_k"] == 4


def test_settings_without_the_column_are_refused(trained):
    with pytest.raises(UsageError, match="incomplete or of another version .*text"):
        served_task_from_settings({**trained.task.settings(), "columns": {}}, "m")


def test_it_is_no_task_to_fine_tune_for(trained):
    assert trained.task.declaration.name not in TASKS
    with pytest.raises(UsageError, match="no labeled rows to evaluate on; run bert-pipeline score"):
        task_from_settings(trained.task.settings(), "m")


def test_a_model_without_the_head_is_refused(folder):
    encoder = read_model_directory(folder.parent / "models" / "encoder")
    with pytest.raises(UsageError, match="has no masked-LM head, which predicts masked tokens"):
        directory_for_task(encoder, config())


def test_a_pretrained_model_has_the_head(folder):
    pretrained = read_model_directory(folder.parent / "models" / "pretraining")
    settings = directory_for_task(pretrained, config()).task
    assert settings["top_k"] == 5
    assert settings["max_seq_length"] == pretrained.config.max_position_embeddings


def test_a_fine_tuned_model_is_refused(folder):
    pretrained = read_model_directory(folder.parent / "models" / "pretraining")
    tuned = dataclasses.replace(pretrained, task={"task": "classification"})
    with pytest.raises(UsageError, match="was fine-tuned for classification; give the pretrained"):
        directory_for_task(tuned, config())


def test_more_candidates_than_entries_are_refused(folder):
    with pytest.raises(UsageError, match=r"--top-k 999: the vocabulary of .* use at most that"):
        directory_for_task(read_model_directory(folder), config(top_k=999))


def test_candidates_are_for_a_task_alone():
    tasks = {name: task.options for name, task in pretrained_tasks().items()}
    sections = Variants(common=ExportConfig, key="task", sections=tasks)
    given = {"run": "m", "output": "o", "top_k": "3"}
    with pytest.raises(UsageError, match="^--top-k: is only for --task fill-mask; leave it out$"):
        sections.resolve(flags=given)
    assert sections.resolve(flags={**given, "task": "fill-mask"}) == config(
        run="m", output="o", top_k=3
    )


def test_a_row_needs_a_mask():
    assert mask_fault({"text": "a [MASK]"}) is None
    assert mask_fault({"text": "a [mask]"}) == ("text has no [MASK]", "")


def test_json_is_declared(trained):
    assert PredictionField("predicted_tokens", "json") in trained.task.declaration.predictions
