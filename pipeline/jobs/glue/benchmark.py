"""`bench`: a model fine-tuned for the tasks of GLUE, and a table of what it reaches."""

from __future__ import annotations

import csv
import dataclasses
import gc
import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras

from bert_tf.base.errors import UsageError
from bert_tf.base.files import replacing_file
from bert_tf.base.wording import quantity
from bert_tf.config.bert_file import model_folder
from bert_tf.config.section import build_section
from bert_tf.config.sections import BenchConfig, EvaluateConfig
from bert_tf.tasks.registry import finetune_config
from pipeline.jobs import evaluation, finetuning
from pipeline.jobs.glue.tasks import GLUE_TASKS, GlueTask, glue_metrics
from pipeline.jobs.task_reports import check_inputs_exist
from pipeline.outputs.job import JobRecord, RunOptions, run_job


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskScore:
    """What a model reaches in a task, in points of 100.

    Attributes:
        task: its name.
        name: of the evaluation: the task's, of MNLI's second file `MNLI-mismatched`.
        metrics: by name, a value per seed.
        rows: of the evaluation.
    """

    task: str
    name: str
    metrics: dict[str, list[float]]
    rows: int

    @property
    def score(self) -> float:
        """The mean of all metrics and seeds."""
        return statistics.fmean(map(statistics.fmean, self.metrics.values()))


def run(config: BenchConfig, options: RunOptions) -> dict[str, Any]:
    """Fine-tunes for every task, or resumes with those that are not done; returns the manifest.

    Raises:
        UsageError: a task that GLUE does not have, or whose files are missing.
    """
    tasks = chosen_tasks(config)
    data = Path(config.data)
    files = [str(path) for task in tasks for path in task.files(data)]
    inputs = check_inputs_exist({"init": str(model_folder(config.init))})

    def body(record: JobRecord) -> None:
        found: list[TaskScore] = []
        for number, task in enumerate(tasks, start=1):
            record.console.info(f"{task.name}: task {number} of {len(tasks)}")
            with record.stage(task.name):
                found += _measured(config, task, options)
            keras.backend.clear_session()
            gc.collect()
        _record(record, config, found)

    return run_job(
        "bench",
        config,
        options,
        output=config.output,
        output_is_directory=True,
        inputs={**inputs, "data": files},
        body=body,
        can_resume=True,
    )


def chosen_tasks(config: BenchConfig) -> list[GlueTask]:
    """The tasks asked for, else all that the data have, in GLUE's order.

    Raises:
        UsageError: an unknown task, missing files, or no task at all.
    """
    known = {task.name: task for task in GLUE_TASKS}
    unknown = [name for name in config.tasks if name not in known]
    if unknown:
        raise UsageError(f"--task {unknown[0]}: not a task of GLUE; choose from {', '.join(known)}")
    data = Path(config.data)
    tasks = [
        task
        for task in GLUE_TASKS
        if task.name in config.tasks or (not config.tasks and (data / task.name).is_dir())
    ]
    if not tasks:
        raise UsageError(
            f"--data {data}: no folder of a task; expected one or more of {', '.join(known)}"
        )
    for task in tasks:
        for path in task.files(data):
            if not path.is_file():
                raise UsageError(
                    f"{path}: no such file; {task.name} needs it (choose others with --task)"
                )
    return tasks


def _measured(config: BenchConfig, task: GlueTask, options: RunOptions) -> list[TaskScore]:
    """Fine-tunes for a task with every seed, and measures."""
    folder, output = Path(config.data) / task.name, Path(config.output) / task.name
    part = dataclasses.replace(options, overwrite=False, is_part=True)
    shared = ("init", "seeds", "epochs", "batch_size", "learning_rate", "max_seq_length")
    values = {
        "task": task.task,
        "train": str(folder / "train.tsv"),
        "eval": str(folder / task.eval),
        "output": str(output),
        "text_column": task.text,
        "text_pair_column": task.text_pair,
        "label_column": task.label,
        "header": task.header,
        "best_metric": task.selection_metric,
        **{key: getattr(config, key) for key in (*shared, "max_train_rows", "precision", "seed")},
    }
    manifest = finetuning.run(finetune_config(values), part)
    runs = [output / each["path"] for each in manifest.get("runs", [])] or [output]
    found = [_score(task.name, task, runs)]
    if task.further_eval is not None:
        name = f"{task.name}-{Path(task.further_eval).stem.rpartition('_')[2]}"
        measured = Path(config.output) / name
        evaluated = {
            "model": str(output),
            "data": str(folder / task.further_eval),
            "output": str(measured),
        }
        evaluation.run(build_section(EvaluateConfig, evaluated), part)
        found.append(_score(name, task, [measured]))
    return found


def _score(name: str, task: GlueTask, runs: Sequence[Path]) -> TaskScore:
    measured = [json.loads((run / "metrics.json").read_text(encoding="utf-8")) for run in runs]
    each = [glue_metrics(task, metrics) for metrics in measured]
    with (runs[0] / "predictions.jsonl").open("rb") as stream:
        rows = sum(1 for _ in stream)
    return TaskScore(
        task=task.name,
        name=name,
        metrics={key: [one[key] for one in each] for key in each[0]},
        rows=rows,
    )


def glue_score(found: Sequence[TaskScore]) -> float:
    """The mean of the tasks' scores; the two evaluations of MNLI are one task."""
    by_task: dict[str, list[float]] = {}
    for each in found:
        by_task.setdefault(each.task, []).append(each.score)
    return statistics.fmean(map(statistics.fmean, by_task.values()))


def _record(record: JobRecord, config: BenchConfig, found: list[TaskScore]) -> None:
    """Writes the table, shows it, fills the manifest."""
    path = Path(config.output) / "results.csv"
    with replacing_file(path) as aside, aside.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["task", "metric", "mean", "deviation", "seeds", "eval_rows"])
        for each in found:
            for metric, values in each.metrics.items():
                deviation = f"{statistics.stdev(values):.2f}" if len(values) > 1 else ""
                mean = f"{statistics.fmean(values):.2f}"
                writer.writerow([each.name, metric, mean, deviation, len(values), each.rows])
                shown = f"{mean} ± {deviation}" if deviation else mean
                record.console.info(f"  {each.name:15}  {metric:20}  {shown}")
    score = glue_score(found)
    tasks = quantity(len({each.task for each in found}), "task")
    record.console.info(f"mean of {tasks}: {score:.2f}")
    record.counts = {"tasks": len(found), "eval_rows": sum(each.rows for each in found)}
    record.metrics = {"score": score, **{each.name: each.metrics for each in found}}
    record.made = [
        (str(path), "means and standard deviations over the seeds"),
        (config.output, "a run per task, whose best/ is a model"),
    ]
