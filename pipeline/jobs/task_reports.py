"""Checks and reports shared by the jobs on labeled rows."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf.base.console import Console
from bert_tf.base.errors import TooManyRejects, UsageError
from bert_tf.base.files import replacing_file, write_text_atomically
from bert_tf.base.wording import shown_duration
from bert_tf.config.bert_file import model_folder
from bert_tf.config.sections.loop import LoopSection
from bert_tf.data.tables.rejects import RejectTally, write_rejects
from bert_tf.tasks.base.prediction_rows import TaskResults
from bert_tf.tasks.base.task import FileRows, Task
from bert_tf.training.best_model import BestModel
from bert_tf.training.run_files import saved_progress
from pipeline.outputs.job import JobRecord
from pipeline.outputs.job_folder import JobFolder
from pipeline.outputs.job_spec import JobSpec, RunOptions
from pipeline.outputs.manifest import manifest_path, read_manifest
from pipeline.outputs.rejects import RejectLimit, warn_of_rejects
from pipeline.report.document import REPORT
from pipeline.report.page import contents_of, evaluation_page, evaluation_sections


def train_along(spec: JobSpec, options: RunOptions, train: Callable[[], object]) -> dict[str, Any]:
    """Train as a worker other than the chief, which writes the run, unless it is finished.

    Args:
        spec: of the chief's job.
        options: how the command runs.
        train: does the work.

    Returns:
        {}, in place of the manifest.
    """
    finished = None if options.overwrite else spec.open_folder().manifest
    if finished is not None and not spec.is_extended(finished["config"]):
        options.console.info(f"{spec.output} is finished already; nothing to do")
    else:
        train()
    return {}


def log_if_nothing_resumes(run: JobFolder, options: RunOptions) -> None:
    """Report `--resume` without a checkpoint."""
    if options.resume and not (run.path / "checkpoints").is_dir():
        output = run.place.output
        options.console.info(f"{output}: no checkpoint to resume from; starting at step 0")


def warn_of_unfinished_run(path: str, console: Console) -> None:
    """Warn if a model is the best so far of a run that still trains, or was interrupted."""
    model = model_folder(path)
    if model.name != "best" or manifest_path(model.parent).exists():
        return
    run = JobFolder.at(model.parent)
    if run.marker is None:
        return
    progress = saved_progress(run.path / "checkpoints")
    at = f", at step {progress[0]:,} of {progress[1]:,}" if progress else ""
    console.warn(
        f"{path}: its run is unfinished{at}; taking its best model so far (to finish it first, "
        "run its command again)"
    )


def check_inputs_exist(paths: Mapping[str, str | None]) -> dict[str, list[str]]:
    """Return the given paths by config key.

    Args:
        paths: by key, which is also the flag; None for those not given.

    Raises:
        UsageError: a path does not exist.
    """
    for key, path in paths.items():
        if path is not None and not Path(path).exists():
            raise UsageError(f"--{key} {path}: no such file or folder; check the path")
    return {key: [path] for key, path in paths.items() if path is not None}


def log_costs(config: LoopSection, seconds: float, console: Console) -> None:
    """Report the cost of the training time, if price or power of the machine are known."""
    costs = config.rates.shown(seconds)
    if costs:
        console.info(f"training took {shown_duration(seconds)}: {costs}")


def best_model_of(path: str) -> BestModel | None:
    """Return the selected model of the run at a path; None if not recorded."""
    model = model_folder(path)
    of_run = model.parent if model.name == "best" else model
    return BestModel.of_manifest(read_manifest(of_run) or {})


def row_counts(source: FileRows) -> dict[str, int]:
    """Return the rows of a file: read, usable, rejected."""
    rows = len(source)
    rejected = len(source.rejects)
    return {"rows_in": rows + rejected, "rows_out": rows, "rows_rejected": rejected}


@dataclasses.dataclass(frozen=True)
class RejectsCheck:
    """Reports and lists rejects of labeled rows, and refuses too many of any file.

    Attributes:
        limit: None for no limit.
        rejects_file: None in a process that writes nothing.
    """

    limit: RejectLimit | None
    rejects_file: Path | None
    console: Console

    def __call__(self, sources: Sequence[FileRows]) -> None:
        """Check the rows of all files.

        Raises:
            TooManyRejects: a file has more rejects than the limit allows.
        """
        if self.rejects_file is not None:
            rejects = [reject for source in sources for reject in source.rejects]
            write_rejects(self.rejects_file, rejects)
        for source in sources:
            rows = row_counts(source)["rows_in"]
            warn_of_rejects(self.console, source.rejects, rows, source.source)
        for source in sources:
            rejected = len(source.rejects)
            rows = row_counts(source)["rows_in"]
            if self.limit is None or not self.limit.is_exceeded(rejected, rows):
                continue
            tally = RejectTally(source.rejects)
            remedy = tally.summaries()[0].remedy
            cure = f"{remedy}, else correct" if remedy else "correct"
            listed = f" (all in {self.rejects_file})" if self.rejects_file else ""
            raise TooManyRejects(
                f"{self.limit.excess(source.source, rejected, rows)}: {tally.brief()}{listed}; "
                f"{cure} the rows or raise --max-rejects"
            )


def write_evaluation(
    record: JobRecord,
    folder: Path,
    evaluated: tuple[Task, FileRows, TaskResults],
    *,
    model: str,
    best: BestModel | None,
    facts: Sequence[str] = (),
    run: Path | None = None,
) -> None:
    """Write the results of a model on labeled rows to a folder, and their page.

    Args:
        record: the job.
        folder: gets the files.
        evaluated: the task, its rows, and the results on them.
        model: where the model is.
        best: the model among those of its run, None if not known.
        facts: sentences without period, for the head of the page.
        run: folder of the run whose curves end the page; None for no curves.
    """
    task, source, results = evaluated
    write_results(folder, results)
    sections = evaluation_sections(task, source, results)
    page = evaluation_page(
        task,
        source,
        results,
        model=model,
        facts=[*([] if best is None else [str(best)]), *facts],
        chosen_by=None if best is None else best.metric,
        sections=sections,
        run=run,
    )
    write_text_atomically(folder / REPORT, page)
    record.made += [
        (str(folder / "metrics.json"), "metrics of the model"),
        (str(folder / "predictions.jsonl"), "label and prediction of every evaluation row"),
        (str(folder / REPORT), f"both as a page: {contents_of(sections)}"),
    ]


def write_results(folder: Path, results: TaskResults) -> None:
    """Write `metrics.json` and `predictions.jsonl`."""
    errors = {"standard_errors": dict(results.errors)} if results.errors else {}
    metrics = {**results.metrics, **results.report.details, **errors}
    text = json.dumps(metrics, indent=2, ensure_ascii=False)
    write_text_atomically(folder / "metrics.json", f"{text}\n")
    with (
        replacing_file(folder / "predictions.jsonl") as aside,
        aside.open("w", encoding="utf-8") as stream,
    ):
        for prediction in results.predictions:
            stream.write(json.dumps(prediction, ensure_ascii=False) + "\n")


def log_results(console: Console, results: TaskResults) -> None:
    """Show metrics, and the task's own lines and warnings."""
    console.info(*(f"{name}: {results.shown(name)}" for name in results.metrics))
    console.info(*results.report.lines)
    console.warn(*results.report.warnings)
