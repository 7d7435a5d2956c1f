"""`label-errors`: finds labeled rows whose label is likely wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bert_tf.base.files import write_text_atomically
from bert_tf.base.wording import quantity
from bert_tf.config.bert_file import model_folder
from bert_tf.config.sections import LabelErrorsConfig
from bert_tf.data.tables.places import Place
from bert_tf.data.tables.rejects import count_reasons
from bert_tf.tasks.base.corrections import CORRECTIONS, Correction, write_corrections
from bert_tf.tasks.base.declaration import imported
from bert_tf.tasks.registry import label_error_tasks
from bert_tf.tasks.running.evaluation import LabelErrors, write_doubted_rows
from pipeline.jobs.task_reports import (
    RejectsCheck,
    check_inputs_exist,
    log_results,
    row_counts,
    warn_of_unfinished_run,
    write_results,
)
from pipeline.outputs.choices import open_keys, with_kept_choices
from pipeline.outputs.job import JobRecord, run_job
from pipeline.outputs.job_spec import JobSpec, RunOptions
from pipeline.outputs.manifest import rejects_path
from pipeline.report.document import REPORT
from pipeline.report.rows.label_errors_page import label_errors_page


def run(config: LabelErrorsConfig, options: RunOptions) -> dict[str, Any]:
    """Fine-tune a model per fold, or resume with the folds left; return the manifest.

    Args:
        config: of `label-errors`.
        options: how the command runs.

    Raises:
        InputError, UsageError, TooManyRejects, StoppedEarly: see `finetuning.run`.
    """
    left = open_keys(config)
    config = config if options.overwrite else with_kept_choices(config)
    output = Path(config.output)
    folder = output / ".folds"

    def body(record: JobRecord) -> None:
        warn_of_unfinished_run(config.init, options.console)
        check = RejectsCheck(options.max_rejects, rejects_path(output), options.console)
        with record.stage("label_errors"):
            errors = imported(label_error_tasks()[config.task].implementation)(
                config, options.console, check, folder
            )
        _write(record, config, errors)

    inputs = check_inputs_exist(
        {
            "train": config.train,
            "init": str(model_folder(config.init)),
            "corrections": config.more_inputs.get("corrections"),
        }
    )
    spec = JobSpec(config=config, inputs=inputs, can_resume=True, temporary=folder, open_keys=left)
    return run_job(spec, options, body)


def _write(record: JobRecord, config: LabelErrorsConfig, errors: LabelErrors) -> None:
    output = Path(config.output)
    results = errors.results
    doubted = output / "label_errors.csv"
    write_doubted_rows(doubted, errors.doubted, errors.inputs)
    corrections = output / CORRECTIONS
    write_corrections(
        corrections,
        [
            Correction(Place(0), Place(row.line, row.row, row.id), row.label, row.suggested_label)
            for row in errors.doubted
        ],
        [" | ".join(row.texts.values()) for row in errors.doubted],
    )
    write_results(output, results)
    write_text_atomically(
        output / REPORT, label_errors_page(config.train, errors.doubted, len(results.predictions))
    )
    log_results(record.console, results)
    checked = len(results.predictions)
    record.console.info(
        f"{quantity(len(errors.doubted), 'doubtful label')} in {quantity(checked, 'row')}"
    )
    if errors.unchecked:
        record.console.warn(
            f"{quantity(errors.unchecked, 'row')} not checked: no row of another fold has the label"
        )
    counts = row_counts(errors.source)
    record.counts = {
        **counts,
        "train": counts,
        "rows_checked": checked,
        "rows_unchecked": errors.unchecked,
        "rows_doubted": len(errors.doubted),
        "rejected": count_reasons(errors.source.rejects),
    }
    record.metrics = results.metrics
    record.made = [
        (str(doubted), "rows whose label is likely wrong, most doubtful first"),
        (str(corrections), "the suggested labels: edit it for finetune --corrections"),
        (str(output / REPORT), "these rows with both labels, as a page"),
        (str(output / "metrics.json"), "metrics of the models on rows they have not seen"),
        (str(output / "predictions.jsonl"), "label and out-of-fold prediction of every row"),
    ]
    record.list_rejects(rejects_path(output), len(errors.source.rejects))
