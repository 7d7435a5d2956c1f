"""`evaluate`: a fine-tuned model and labelled rows to metrics and predictions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bert_tf.config.sections import EvaluateConfig
from bert_tf.data.atomic import write_text_atomically
from bert_tf.data.rejects import count_reasons, write_rejects
from bert_tf.tasks.evaluation import evaluate
from pipeline.artifacts import rejects_path
from pipeline.jobs.job import JobRecord, RunOptions, run_job
from pipeline.jobs.task_reports import refuse_missing_inputs, row_counts, write_predictions


def run(config: EvaluateConfig, options: RunOptions) -> dict[str, Any]:
    """Measures a model; returns the manifest."""

    def body(record: JobRecord) -> None:
        output = Path(config.output)
        with record.stage("evaluate"):
            loss, results, data = evaluate(config, options.console)
        metrics = {**results.metrics, "loss": loss}
        write_predictions(output / "predictions.jsonl", results.predictions)
        write_rejects(rejects_path(output), data.rejects)
        write_text_atomically(output / "metrics.json", json.dumps(metrics, indent=2) + "\n")
        record.counts = {**row_counts(data), "rejected": count_reasons(data.rejects)}
        record.metrics = metrics
        for name, value in metrics.items():
            options.console.say(f"{name}: {value:.4f}")
        record.made = [
            (str(output / "metrics.json"), "the metrics"),
            (str(output / "predictions.jsonl"), "label and prediction of every row"),
        ]
        if data.rejects:
            count = len(data.rejects)
            record.made.append((str(rejects_path(output)), f"{count} rejected rows"))

    return run_job(
        "evaluate",
        config,
        options,
        output=config.output,
        output_is_directory=True,
        inputs=refuse_missing_inputs({"--model": config.model, "--data": config.data}),
        body=body,
        ignored_keys=("batch_tokens",),
    )
