"""Tasks to fine-tune for, by name on the command line; imports no implementation.

`PRETRAINED_TASKS` lists tasks without fine-tuning, whose names config keys choose from.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from bert_tf.base.errors import ConfigError, UsageError
from bert_tf.base.wording import shortened
from bert_tf.config.section import build_section
from bert_tf.config.sections.finetuning import FinetuneConfig
from bert_tf.tasks import PRETRAINED_TASKS
from bert_tf.tasks.base.declaration import (
    PAIR_IS_OPTIONAL,
    LabelErrorsDeclaration,
    PretrainedTaskDeclaration,
    ServedTaskDeclaration,
    TaskDeclaration,
    imported,
)
from bert_tf.tasks.classification.options import CLASSIFICATION
from bert_tf.tasks.multilabel.options import MULTILABEL
from bert_tf.tasks.multiple_choice.options import MULTIPLE_CHOICE
from bert_tf.tasks.question_answering.options import QUESTION_ANSWERING
from bert_tf.tasks.regression.options import REGRESSION
from bert_tf.tasks.similarity.options import SIMILARITY
from bert_tf.tasks.tagging.options import TAGGING

if TYPE_CHECKING:
    from bert_tf.base.console import Console
    from bert_tf.data.tables.sketches import TableSketch
    from bert_tf.tasks.base.host_task import HostTask
    from bert_tf.tasks.base.report_sections import Section
    from bert_tf.tasks.base.served_task import PretrainedTask, ServedTask
    from bert_tf.tasks.base.task import Task
    from bert_tf.weights.model_directory import ModelDirectory

# The first is the one that hints for the next command name.
TASKS: dict[str, TaskDeclaration] = {
    task.name: task
    for task in (
        CLASSIFICATION,
        MULTILABEL,
        REGRESSION,
        TAGGING,
        QUESTION_ANSWERING,
        MULTIPLE_CHOICE,
        SIMILARITY,
    )
}


def task_class(name: str) -> type[Task]:
    """Import the class of a task to fine-tune for.

    Args:
        name: a key of `TASKS`.
    """
    return cast("type[Task]", imported(TASKS[name].implementation))


def pretrained_tasks() -> dict[str, PretrainedTaskDeclaration]:
    """Return the declarations of all tasks without fine-tuning, by name."""
    return {name: _pretrained_declaration(name) for name in PRETRAINED_TASKS}


def pretrained_task_class(name: str) -> type[PretrainedTask]:
    """Import the class of a task without fine-tuning.

    Args:
        name: a key of `PRETRAINED_TASKS`.
    """
    return cast("type[PretrainedTask]", imported(_pretrained_declaration(name).implementation))


def _pretrained_declaration(name: str) -> PretrainedTaskDeclaration:
    return cast("PretrainedTaskDeclaration", imported(PRETRAINED_TASKS[name]))


def label_error_tasks() -> dict[str, LabelErrorsDeclaration]:
    """Return the declarations of tasks with a search for wrong labels, by name."""
    declared_by_task = {name: task.label_errors for name, task in TASKS.items()}
    return {name: declared for name, declared in declared_by_task.items() if declared is not None}


def page_function(name: str) -> Callable[..., Iterable[Section]] | None:
    """Import the function that yields the sections of a task's page; None if it declares none."""
    page = TASKS[name].page
    return None if page is None else cast("Callable[..., Iterable[Section]]", imported(page))


def likely_columns(name: str, table: TableSketch) -> dict[str, Any]:
    """Return the settings that name a table's columns, see `TaskDeclaration.columns`.

    Args:
        name: name of the task.
        table: statistics of the table's columns.

    Raises:
        UsageError: a needed column is missing.
    """
    columns = TASKS[name].columns
    return {} if columns is None else columns(table)


def finetune_config(values: Mapping[str, Any]) -> FinetuneConfig:
    """Build the section of `finetune` for the task in the values.

    Raises:
        ConfigError: with all faults of the values.
    """
    name = values.get("task")
    if name not in TASKS:
        raise ConfigError([f"finetune.task: expected one of {', '.join(TASKS)}, got {name!r}"])
    return build_section(TASKS[name].options, dict(values))


def declared_task(settings: Mapping[str, Any] | None, path: str) -> ServedTaskDeclaration:
    """Return the declaration of a model's task.

    Args:
        settings: the content of its `task.json`; None if it has none.
        path: path of the model, for messages.

    Raises:
        UsageError: the model has no task, or an unknown one.
    """
    if settings is None:
        raise UsageError(
            f"{path}: is not fine-tuned for a task (it has no task.json); "
            "run bert-pipeline finetune with --init on it first, or import-weights on a model that "
            "another library fine-tuned"
        )
    name = settings.get("task")
    if isinstance(name, str) and name in TASKS:
        return TASKS[name]
    if isinstance(name, str) and name in PRETRAINED_TASKS:
        return _pretrained_declaration(name).for_columns(settings.get("columns"))
    known = ", ".join((*TASKS, *PRETRAINED_TASKS))
    raise UsageError(f"{path}: task {shortened(name)} is not known; known are {known}")


def served_task_from_settings(settings: dict[str, Any] | None, path: str) -> ServedTask:
    """Restore the task of a model directory, of pretrained models too.

    Args:
        settings: the content of its `task.json`; None if it has none.
        path: path of the model, for messages.

    Raises:
        UsageError: see `declared_task`, or a setting is missing.
    """
    implementation = declared_task(settings, path).implementation
    return cast("ServedTask", _restored(implementation, settings, path))


def host_task_from_settings(settings: dict[str, Any] | None, path: str) -> HostTask | None:
    """Restore the host of a model's task; None if it has none.

    Args:
        settings: the content of its `task.json`; None if it has none.
        path: path of the model, for messages.

    Raises:
        UsageError: see `declared_task`, or a setting is missing.
    """
    host = declared_task(settings, path).host
    return None if host is None else cast("HostTask", _restored(host, settings, path))


def _restored(implementation: str, settings: dict[str, Any] | None, path: str) -> Any:
    try:
        return imported(implementation).from_settings(settings)
    except (KeyError, TypeError) as error:
        raise UsageError(
            f"{path}: its task.json is incomplete or of another version ({error})"
        ) from None


def task_from_settings(settings: dict[str, Any] | None, path: str) -> Task:
    """Restore the fine-tuned task of a model directory.

    Args:
        settings: the content of its `task.json`; None if it has none.
        path: path of the model, for messages.

    Raises:
        UsageError: the model has another task, or none.
    """
    name = declared_task(settings, path).name
    if name not in TASKS:
        raise UsageError(
            f"{path}: was exported for {name}, which has no labeled rows to evaluate on; "
            "run bert-pipeline score on texts instead"
        )
    return cast("Task", served_task_from_settings(settings, path))


# Tensors of the heads that HuggingFace's classes for fine-tuning have.
_TASK_HEADS = ("classifier.weight", "qa_outputs.weight")


def task_of_weights(directory: ModelDirectory) -> Task | None:
    """Return the task that weights of another library were fine-tuned for; None if unknown."""
    tasks = (task_class(name).from_weights(directory) for name in TASKS)
    return next((task for task in tasks if task is not None), None)


def with_task_of_weights(directory: ModelDirectory, console: Console) -> ModelDirectory:
    """Return a model with the task of its head, if it has no `task.json`.

    Models of other libraries have none.

    Raises:
        UsageError: there is a head for an unknown task.
        InputError: the labels in its config do not fit the head.
    """
    if directory.task is not None:
        return directory
    task = task_of_weights(directory)
    heads = [name for name in _TASK_HEADS if name in directory.tensors]
    if task is None and heads:
        raise UsageError(
            f"{directory.path}: has a head ({heads[0]}) for which there is no task; correct "
            "architectures and problem_type in its config.json"
        )
    if task is None:
        return directory
    settings = task.settings()
    inputs = [name for name in task.declaration.inputs if settings["columns"].get(name)]
    if settings.get(PAIR_IS_OPTIONAL):
        inputs[-1] += " where a table has it"
    console.info(
        f"{directory.path}: has a head for {task.declaration.name}; settings that weights do not "
        f"store (columns, lengths) are defaults: it reads {' and '.join(inputs)}. bert-pipeline "
        "import-weights writes them to a task.json, where they can be changed"
    )
    return dataclasses.replace(directory, task=settings)
