"""GLUE (Wang et al., 2018): a model fine-tuned for its tasks with several seeds, and measured.

    python benchmarks/glue.py --init run/best --data glue --output glue-results [--seeds 3]
        [--task RTE --task MRPC]

DATA has the folders of the benchmark as it is published (`RTE/train.tsv`, `RTE/dev.tsv`,
`MNLI/dev_matched.tsv`, …); tasks without a folder are left out. All tasks are fine-tuned with the
same settings and measured on their development rows by the metrics of the paper; MNLI also on the
mismatched rows, with the model of the best seed. `results.csv` has mean and standard deviation over
the seeds, `results.json` every value. A repeated command resumes with the run it was in.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import gc
import json
import os
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import keras

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.base.wording import quantity
from bert_tf.config.section import build_section
from bert_tf.config.sections import EvaluateConfig
from bert_tf.tasks.registry import finetune_config
from pipeline.jobs import evaluation, finetuning
from pipeline.outputs.job_spec import RunOptions
from pipeline.outputs.rejects import RejectLimit

# Options that finetune takes by the same names.
SETTINGS = (
    *("init", "seeds", "seed", "epochs", "batch_size", "learning_rate", "max_seq_length"),
    *("max_train_rows", "precision"),
)
ACCURACY, F1, MATTHEWS = "accuracy", "f1", "matthews_correlation"
PEARSON, SPEARMAN = "pearson", "spearman"
_POSITIVE = "1"  # the label whose F1 is MRPC's and QQP's


@dataclasses.dataclass(frozen=True, kw_only=True)
class GlueTask:
    """A task of GLUE, in the folder of the same name.

    Attributes:
        name: of the task and its folder.
        task: of `finetune`.
        text, text_pair, label: columns; numbers where the files have no header.
        metrics: by which GLUE measures it; its score is their mean.
        eval: the file of labeled rows that are not for training.
        further_eval: another one, measured with the same model; None without.
        header: whether the first line names the columns.
    """

    name: str
    task: str = "classification"
    text: str = "sentence"
    text_pair: str | None = None
    label: str = "label"
    metrics: tuple[str, ...] = (ACCURACY,)
    eval: str = "dev.tsv"
    further_eval: str | None = None
    header: bool = True

    def files(self, folder: Path) -> list[Path]:
        """Those it is trained and measured with."""
        names = ["train.tsv", self.eval, *filter(None, [self.further_eval])]
        return [folder / self.name / name for name in names]

    @property
    def selection_metric(self) -> str:
        """The metric of `finetune` that chooses the best epoch."""
        return ACCURACY if self.metrics[0] == F1 else self.metrics[0]


GLUE_TASKS = (
    GlueTask(name="CoLA", text="4", label="2", metrics=(MATTHEWS,), header=False),
    GlueTask(name="SST-2"),
    GlueTask(
        name="MRPC",
        text="#1 String",
        text_pair="#2 String",
        label="Quality",
        metrics=(F1, ACCURACY),
    ),
    GlueTask(
        name="STS-B",
        task="regression",
        text="sentence1",
        text_pair="sentence2",
        label="score",
        metrics=(PEARSON, SPEARMAN),
    ),
    GlueTask(
        name="QQP",
        text="question1",
        text_pair="question2",
        label="is_duplicate",
        metrics=(F1, ACCURACY),
    ),
    GlueTask(
        name="MNLI",
        text="sentence1",
        text_pair="sentence2",
        label="gold_label",
        eval="dev_matched.tsv",
        further_eval="dev_mismatched.tsv",
    ),
    GlueTask(name="QNLI", text="question", text_pair="sentence"),
    GlueTask(name="RTE", text="sentence1", text_pair="sentence2"),
    GlueTask(name="WNLI", text="sentence1", text_pair="sentence2"),
)


def glue_metrics(task: GlueTask, measured: Mapping[str, Any]) -> dict[str, float]:
    """GLUE's metrics of a task, in points of 100.

    Args:
        task: name of the task.
        measured: metrics and details, as `metrics.json` has them.
    """
    values = {
        name: measured["labels"][_POSITIVE]["f1"] if name == F1 else measured[name]
        for name in task.metrics
    }
    return {name: 100 * float(value) for name, value in values.items()}


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


def run(options: argparse.Namespace, console: Console) -> list[TaskScore]:
    """Fine-tunes for every task, or resumes with those that are not done.

    Raises:
        UsageError: a task that GLUE does not have, or whose files are missing.
    """
    tasks = chosen_tasks(options)
    found: list[TaskScore] = []
    for number, task in enumerate(tasks, start=1):
        console.info(f"{task.name}: task {number} of {len(tasks)}")
        found += _measured(options, task, console)
        keras.backend.clear_session()
        gc.collect()
    _write(Path(options.output), found, console)
    return found


def chosen_tasks(options: argparse.Namespace) -> list[GlueTask]:
    """Return the tasks asked for, else all that the data have, in GLUE's order.

    Raises:
        UsageError: an unknown task, missing files, or no task at all.
    """
    known = {task.name: task for task in GLUE_TASKS}
    unknown = [name for name in options.task if name not in known]
    if unknown:
        raise UsageError(f"--task {unknown[0]}: not a task of GLUE; choose from {', '.join(known)}")
    data = Path(options.data)
    tasks = [
        task
        for task in GLUE_TASKS
        if task.name in options.task or (not options.task and (data / task.name).is_dir())
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


def _measured(options: argparse.Namespace, task: GlueTask, console: Console) -> list[TaskScore]:
    """Fine-tunes for a task with every seed, and measures."""
    folder, output = Path(options.data) / task.name, Path(options.output) / task.name
    part = RunOptions(console=console, max_rejects=RejectLimit.parse("10%"), is_part=True)
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
        **{key: getattr(options, key) for key in SETTINGS},
    }
    manifest = finetuning.run(finetune_config(values), part)
    runs = [output / each["path"] for each in manifest.get("runs", [])] or [output]
    found = [_score(task.name, task, runs)]
    if task.further_eval is not None:
        name = f"{task.name}-{Path(task.further_eval).stem.rpartition('_')[2]}"
        measured = Path(options.output) / name
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
    """Return the mean of the tasks' scores; the two evaluations of MNLI are one task."""
    by_task: dict[str, list[float]] = {}
    for each in found:
        by_task.setdefault(each.task, []).append(each.score)
    return statistics.fmean(map(statistics.fmean, by_task.values()))


def _write(output: Path, found: Sequence[TaskScore], console: Console) -> None:
    """Write the table and the values, and show them."""
    with (output / "results.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["task", "metric", "mean", "deviation", "seeds", "eval_rows"])
        for each in found:
            for metric, values in each.metrics.items():
                deviation = f"{statistics.stdev(values):.2f}" if len(values) > 1 else ""
                mean = f"{statistics.fmean(values):.2f}"
                writer.writerow([each.name, metric, mean, deviation, len(values), each.rows])
                shown = f"{mean} ± {deviation}" if deviation else mean
                console.info(f"  {each.name:15}  {metric:20}  {shown}")
    score = glue_score(found)
    results = {"score": score, **{each.name: each.metrics for each in found}}
    (output / "results.json").write_text(json.dumps(results, indent=2), encoding="utf-8")
    console.info(f"mean of {quantity(len({each.task for each in found}), 'task')}: {score:.2f}")


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--init", required=True, help="model to fine-tune, as of finetune")
    parser.add_argument("--data", required=True, help="folder with a folder per task")
    parser.add_argument("--output", required=True, help="folder for a run per task and results")
    parser.add_argument("--task", action="append", default=[], help="a task; repeatable")
    parser.add_argument("--seeds", type=int, default=3, help="runs per task")
    parser.add_argument("--seed", type=int, default=1, help="of the first run")
    parser.add_argument("--epochs", type=float, default=3.0)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, default=5e-5)
    parser.add_argument("--max-seq-length", type=int, default=128)
    parser.add_argument("--max-train-rows", type=int, default=0, help="of each task; 0 for all")
    parser.add_argument("--precision", default="auto")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    run(parsed(), Console())
