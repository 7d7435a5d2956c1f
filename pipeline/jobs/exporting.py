"""`export`: a run to a model that others can load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bert_tf.config.sections import ExportConfig
from bert_tf.data.atomic import write_text_atomically
from bert_tf.export.loading import load_trained_model
from bert_tf.export.model_card import model_card
from bert_tf.export.saved_model import write_huggingface_folder, write_saved_model
from bert_tf.weights.model_directory import read_model_directory
from pipeline.artifacts import read_manifest
from pipeline.jobs.job import JobRecord, RunOptions, run_job


def run(config: ExportConfig, options: RunOptions) -> dict[str, Any]:
    """Writes the model directory `config.output`; returns the manifest."""
    source = read_model_directory(config.run).path
    run_manifest = read_manifest(config.run)
    if run_manifest is None and (Path(config.run) / "checkpoints").is_dir():
        options.console.warn(f"{config.run} is not finished; taking its best model so far")

    def body(record: JobRecord) -> None:
        output = Path(config.output)
        with record.stage("load"):
            trained = load_trained_model(str(source))
        directory = trained.directory
        with record.stage("write"):
            write_huggingface_folder(trained, output)
            if config.format == "savedmodel":
                options.console.progress("tracing the model")
                write_saved_model(trained, output)
            card = model_card(
                directory.config,
                directory.task,
                lowercase=directory.lowercase,
                manifest=run_manifest or {},
                has_saved_model=config.format == "savedmodel",
            )
            write_text_atomically(output / "MODEL_CARD.md", card)
        record.extra = {"task": directory.task, "format": config.format}
        record.made = [
            (str(output), "the model"),
            (str(output / "MODEL_CARD.md"), "its data and metrics, and how to load it"),
        ]
        if config.format == "savedmodel" and directory.task is not None:
            record.next_command = [
                *("bert-pipeline", "score", "--model", config.output),
                *("--input", "new.csv", "--output", "scored.csv"),
            ]

    return run_job(
        "export",
        config,
        options,
        output=config.output,
        output_is_directory=True,
        inputs=[str(source)],
        body=body,
    )
