"""`bert-pipeline demo`: every stage on one machine, each with its command, and a report."""

from __future__ import annotations

import csv
import dataclasses
import json
import shlex
import textwrap
import time
from pathlib import Path
from typing import Any

from bert_tf.base.errors import UsageError
from bert_tf.config.section import Section
from bert_tf.config.sections.tables import RunnerConfig, StorageConfig
from bert_tf.training.metrics_log import read_metrics
from pipeline.demo.corpus import write_corpus
from pipeline.demo.plan import DemoPlan, TaskPlan, find_weights, make_plan, write_data
from pipeline.jobs import (
    evaluation,
    exporting,
    finetuning,
    pretraining,
    pretraining_examples,
    scoring,
    vocabulary,
)
from pipeline.outputs.job_spec import RunOptions
from pipeline.outputs.lock import holding_output
from pipeline.outputs.place import OutputPlace, check_place
from pipeline.proposal.config_text import option_words
from pipeline.report.artifact import loss_curve_lines

_LINE_WIDTH = 96  # characters
_RUNNER = RunnerConfig()


def run(output: str, weights: str | None, options: RunOptions) -> dict[str, Any]:
    """Run every stage that is not finished yet, and show the results.

    Args:
        output: folder of the demo.
        weights: folder to fine-tune from; None for the package with MiniLM.
        options: of all jobs.

    Returns:
        `pretraining`, `complaints` and `cities` (metrics by name), `files` (path by meaning) and
        `seconds`.

    Raises:
        UsageError: there are no weights, or the folder has another release's demo, or a running
            one.
    """
    if Path(output).is_file():
        raise UsageError(f"--output {output}: is a file; give a folder")
    source = find_weights(weights)
    place = OutputPlace(output=output, is_directory=True)
    check_place(place, [str(source)])
    with holding_output(place, "demo", options.console):
        return _run_stages(Path(output), source, options)


def _run_stages(folder: Path, weights: Path, options: RunOptions) -> dict[str, Any]:
    start = time.monotonic()
    console = options.console
    plan = make_plan(folder, weights)
    _write_inputs(plan, options)
    _run("vocabulary", vocabulary, options, plan.vocab, _RUNNER)
    _run("pretraining data", pretraining_examples, options, plan.preprocess, _RUNNER)
    title = "pretraining a tiny BERT from scratch"
    _run(title, pretraining, options, plan.train, StorageConfig())
    measures = {
        "complaints": _run_task("complaints by kind", plan.complaints, options),
        "cities": _run_task("questions on cities", plan.cities, options),
    }
    measures["pretraining"], curve = describe_pretraining(Path(plan.train.output))
    files = _made_files(plan)
    seconds = round(time.monotonic() - start, 1)
    console.info("")
    for line in (
        *curve,
        "",
        *describe_classification(measures["complaints"], Path(plan.complaints.score.output)),
        "",
        *describe_answers(measures["cities"], Path(plan.cities.score.output)),
        "",
        "made:",
        *align([(path, meaning) for meaning, path in files.items()]),
        f"done in {seconds:.0f} s",
    ):
        console.info(line)
    return {**measures, "files": files, "seconds": seconds}


def _write_inputs(plan: DemoPlan, options: RunOptions) -> None:
    """Write data files and corpus, unless they are there from an earlier run."""
    console = options.console
    console.info("== corpus: sentences from the documentation of the installed packages")
    write_data(plan.data)
    if plan.corpus.is_dir():
        console.info(f"{plan.corpus} is there already; nothing to do")
        return
    counts = write_corpus(plan.corpus, data=plan.data)
    for name, sentences in counts.items():
        console.info(f"  {plan.corpus / name}  {sentences:,} sentences")


def _run_task(title: str, task: TaskPlan, options: RunOptions) -> dict[str, Any]:
    """Fine-tune, evaluate, export and score; return the metrics on held-out rows."""
    _run(f"{title}: fine-tuning", finetuning, options, task.finetune)
    metrics = _run(f"{title}: held-out rows", evaluation, options, task.evaluate)["metrics"]
    _run(f"{title}: a SavedModel that takes text", exporting, options, task.export)
    _run(f"{title}: scoring new rows", scoring, options, task.score, _RUNNER)
    return metrics


def _run(title: str, job: Any, options: RunOptions, *sections: Section) -> dict[str, Any]:
    """Run a job after showing the command line that does the same."""
    options.console.info(f"\n== {title}")
    options.console.info("$ " + command_line(sections[0]))
    return job.run(*sections, options)


def _made_files(plan: DemoPlan) -> dict[str, str]:
    files = {
        "raw text": str(plan.corpus),
        "vocabulary": plan.vocab.output,
        "pretraining records": plan.preprocess.output,
        "pretraining run": plan.train.output,
    }
    for name, task in (("complaints", plan.complaints), ("cities", plan.cities)):
        files[f"{name}: labeled rows"] = task.finetune.train
        files[f"{name}: fine-tuning run"] = task.finetune.output
        files[f"{name}: measures on held-out rows"] = task.evaluate.output
        files[f"{name}: SavedModel, text in"] = task.export.output
        files[f"{name}: scored rows"] = task.score.output
    return files


def describe_pretraining(run: Path) -> tuple[dict[str, float], list[str]]:
    """Describe a run of pretraining.

    Args:
        run: its folder.

    Returns:
        The first and last measures on held-out documents, and lines with the curve of the loss.
    """
    metrics = run / "metrics.jsonl"
    lines = [
        "a tiny BERT pretrained from scratch, masked-LM + next-sentence",
        *loss_curve_lines(metrics),
    ]
    evaluations = [line for line in read_metrics(metrics) if line["split"] == "eval"]
    # The numbers of a tiny model are poor; the difference shows that it learns.
    first = evaluations[0]
    last = evaluations[-1]
    measures: dict[str, float] = {}
    for key in ("loss", "mlm_loss", "mlm_accuracy", "nsp_accuracy"):
        measures[f"first_{key}"] = first[key]
        measures[key] = last[key]
        lines.append(
            f"  held-out documents: {key} {first[key]:.3f} at step {first['step']}, "
            f"{last[key]:.3f} at step {last['step']}"
        )
    return measures, lines


def describe_classification(metrics: dict[str, Any], scored: Path) -> list[str]:
    """Return lines with the measures on held-out rows, and new rows with their predictions."""
    lines = [
        f"complaints, held-out rows: accuracy {metrics['accuracy']:.3f}, "
        f"macro F1 {metrics['macro_f1']:.3f}",
        "new complaints, as scored:",
    ]
    with scored.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            lead = f"  {row['predicted_label']:<9}{float(row['predicted_score']):5.2f}  "
            width = _LINE_WIDTH - len(lead)
            lines.append(lead + textwrap.shorten(row["text"], width, placeholder=" …"))
    return lines


def describe_answers(metrics: dict[str, Any], scored: Path) -> list[str]:
    """Return lines with the measures on held-out questions, and answers to new questions."""
    lines = [
        f"cities, held-out questions: exact match {metrics['exact_match']:.1f}, "
        f"F1 {metrics['f1']:.1f} (of 100)",
        "new questions, as answered:",
    ]
    pairs = []
    for line in scored.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        answer = f"{row['predicted_score']:.2f}  {row['predicted_answer']}"
        pairs.append((row["question"], answer))
    return lines + align(pairs)


def align(rows: list[tuple[str, str]]) -> list[str]:
    """Return two indented columns, the first as wide as its longest text."""
    width = max((len(first) for first, _ in rows), default=0)
    return [f"  {first:<{width}}  {second}" for first, second in rows]


def command_line(section: Section) -> str:
    """Return the `bert-pipeline` command with every key that differs from its default."""
    fields = dataclasses.fields(section)
    arguments = [field.name for field in fields if field.metadata["positional"]]
    keys = [field.name for field in fields if field.name not in arguments]
    values = [str(getattr(section, name)) for name in arguments]
    options = option_words(section, keys, section=section.section_name)
    command = section.section_name.replace("_", "-")
    return shlex.join(["bert-pipeline", command, *values, *options])
