"""Every task, by its name on the command line; the only place that lists them.

Importing this imports no task's implementation, so the command line can.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bert_tf.base.errors import ConfigError, UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections.finetuning import FinetuneConfig
from bert_tf.tasks.classification.options import CLASSIFICATION
from bert_tf.tasks.declaration import TaskDeclaration
from bert_tf.tasks.question_answering.options import QUESTION_ANSWERING

if TYPE_CHECKING:
    from bert_tf.tasks.task import Task
    from bert_tf.weights.model_directory import ModelDirectory

# The first is the one that hints for the next command name.
TASKS: dict[str, TaskDeclaration] = {
    task.name: task for task in (CLASSIFICATION, QUESTION_ANSWERING)
}


def task_class(name: str) -> type[Task]:
    """The class of a task."""
    module, _, attribute = TASKS[name].implementation.partition(":")
    return getattr(importlib.import_module(module), attribute)


def finetune_config(values: Mapping[str, Any]) -> FinetuneConfig:
    """The section of `finetune` for the task that its values name.

    Raises:
        ConfigError: with every fault of the values.
    """
    name = values.get("task")
    if name not in TASKS:
        raise ConfigError([f"finetune.task: expected one of {', '.join(TASKS)}, got {name!r}"])
    return build_section(TASKS[name].options, dict(values))


def declared_task(settings: Mapping[str, Any] | None, path: str) -> TaskDeclaration:
    """What is declared of the task that a model was fine-tuned for.

    Args:
        settings: content of its `task.json`, None if it has none.
        path: the model, for the message.

    Raises:
        UsageError: it was not fine-tuned, or for a task that is not known here.
    """
    if settings is None:
        raise UsageError(
            f"{path}: is not fine-tuned for a task (it has no task.json); "
            "run bert-pipeline finetune with --init on it first"
        )
    name = settings.get("task")
    if not isinstance(name, str) or name not in TASKS:
        raise UsageError(f"{path}: task {name!r} is not known; known are {', '.join(TASKS)}")
    return TASKS[name]


def task_from_settings(settings: dict[str, Any] | None, path: str) -> Task:
    """The task that a model directory was fine-tuned for; see `declared_task`.

    Raises:
        UsageError: as `declared_task`, or the settings are incomplete.
    """
    name = declared_task(settings, path).name
    assert settings is not None
    try:
        return task_class(name).from_settings(settings)
    except (KeyError, TypeError) as error:
        raise UsageError(
            f"{path}: its task.json is incomplete or of another version ({error})"
        ) from None


def task_of_weights(directory: ModelDirectory) -> Task | None:
    """The task that weights of another library were fine-tuned for; None if that is not known."""
    tasks = (task_class(name).from_weights(directory) for name in TASKS)
    return next((task for task in tasks if task is not None), None)
