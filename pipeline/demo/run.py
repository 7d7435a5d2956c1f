"""`bert-pipeline demo`: the whole path on one machine, each stage with the command that does it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from bert_tf.base.errors import UsageError
from bert_tf.config.sections.run import RunnerConfig, StorageConfig
from pipeline.demo.closing import (
    align,
    describe_answers,
    describe_classification,
    describe_pretraining,
)
from pipeline.demo.command_line import command_line
from pipeline.demo.corpus import write_corpus
from pipeline.demo.files import find_weights, write_data
from pipeline.demo.plan import DemoPlan, TaskPlan, make_plan
from pipeline.jobs import (
    evaluation,
    exporting,
    finetuning,
    pretraining,
    pretraining_examples,
    scoring,
    vocabulary,
)
from pipeline.outputs.job import RunOptions
from pipeline.outputs.lock import holding_output
from pipeline.outputs.place import OutputPlace, check_place

_RUNNER = RunnerConfig()


def run(output: str, weights: str | None, options: RunOptions) -> dict[str, Any]:
    """Runs every stage that is not finished yet and shows what came out.

    Args:
        output: folder to work in.
        weights: HuggingFace folder to fine-tune from; None takes the installed package.
        options: how to run.

    Returns:
        `pretraining`, `complaints` and `cities` (measures by name), `files` (path by meaning),
        `seconds`.

    Raises:
        UsageError: there are no weights, the folder holds the demo of another release, or another
            demo runs in it.
    """
    if Path(output).is_file():
        raise UsageError(f"--output {output}: is a file; name a folder")
    source = find_weights(weights)
    check_place(OutputPlace(output=output, is_directory=True), [str(source)])
    with holding_output(output, is_directory=True, command="demo", console=options.console):
        return _run_stages(Path(output), source, options)


def _run_stages(folder: Path, weights: Path, options: RunOptions) -> dict[str, Any]:
    start = time.monotonic()
    console = options.console
    plan = make_plan(folder, weights)
    _write_inputs(plan, options)
    _pretrain(plan, options)
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
    console = options.console
    console.info("== corpus: sentences from the documentation of the installed packages")
    write_data(plan.data)
    if plan.corpus.is_dir():
        console.info(f"{plan.corpus} is there already; nothing to do")
        return
    counts = write_corpus(plan.corpus, data=plan.data)
    for name, sentences in counts.items():
        console.info(f"  {plan.corpus / name}  {sentences:,} sentences")


def _pretrain(plan: DemoPlan, options: RunOptions) -> None:
    console = options.console
    console.info("\n== vocabulary")
    console.info("$ " + command_line("vocab", plan.vocab))
    vocabulary.run(plan.vocab, _RUNNER, options)
    console.info("\n== pretraining data")
    console.info("$ " + command_line("preprocess", plan.preprocess))
    pretraining_examples.run(plan.preprocess, _RUNNER, options)
    console.info("\n== pretraining a tiny BERT from scratch")
    console.info("$ " + command_line("train", plan.train))
    pretraining.run(plan.train, StorageConfig(), options)


def _run_task(title: str, task: TaskPlan, options: RunOptions) -> dict[str, Any]:
    """Fine-tunes, measures, exports and scores; returns the measures on held-out rows."""
    console = options.console
    console.info(f"\n== {title}: fine-tuning")
    console.info("$ " + command_line("finetune", task.finetune))
    finetuning.run(task.finetune, options)
    console.info(f"\n== {title}: held-out rows")
    console.info("$ " + command_line("evaluate", task.evaluate))
    metrics = evaluation.run(task.evaluate, options)["metrics"]
    console.info(f"\n== {title}: a SavedModel that takes text")
    console.info("$ " + command_line("export", task.export))
    exporting.run(task.export, options)
    console.info(f"\n== {title}: scoring new rows")
    console.info("$ " + command_line("score", task.score))
    scoring.run(task.score, _RUNNER, options)
    return metrics


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
