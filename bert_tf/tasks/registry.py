"""Every task by its name on the command line."""

from __future__ import annotations

from typing import Any

from bert_tf.base.errors import UsageError
from bert_tf.tasks.classification.task import ClassificationTask
from bert_tf.tasks.question_answering.task import QuestionAnsweringTask
from bert_tf.tasks.task import Task

TASKS: dict[str, type[Task]] = {
    task.name: task for task in (ClassificationTask, QuestionAnsweringTask)
}


def task_from_settings(settings: dict[str, Any] | None, path: str) -> Task:
    """The task that a model directory was fine-tuned for.

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
    if name not in TASKS:
        raise UsageError(f"{path}: task {name!r} is not known; known are {', '.join(TASKS)}")
    try:
        return TASKS[name].from_settings(settings)
    except (KeyError, TypeError) as error:
        raise UsageError(
            f"{path}: its task.json is incomplete or of another version ({error})"
        ) from None
