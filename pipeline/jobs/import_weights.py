"""`import-weights`: other libraries' BERT weights to a model directory."""

from __future__ import annotations

from typing import Any

from bert_tf.config.sections import FinetuneConfig, ImportWeightsConfig
from bert_tf.tasks.classification import ClassificationTask
from bert_tf.weights.import_weights import (
    architecture,
    chooses_one_label,
    classifier_labels,
    read_source,
    write_imported,
)
from bert_tf.weights.model_directory import ModelDirectory
from pipeline.jobs.job import JobRecord, RunOptions, run_job

_DEFAULT_LENGTH = 128


def run(config: ImportWeightsConfig, options: RunOptions) -> dict[str, Any]:
    """Writes the model directory `config.output`; returns the manifest."""
    directory = read_source(config.source)

    def body(record: JobRecord) -> None:
        task = directory.task or default_task(directory)
        with record.stage("convert"):
            write_imported(directory, config.output, task=task)
        record.counts = {"tensors": len(directory.tensors), "pieces": len(directory.vocab)}
        record.extra = {
            "architecture": architecture(directory),
            "lowercase": directory.lowercase,
            "model": directory.config.as_dict(),
            "task": task,
        }
        record.made.append((config.output, f"a {architecture(directory)}"))
        if task is None:
            record.next_command = [
                *("bert-pipeline", "finetune", "classification", "--train", "train.csv"),
                *("--eval", "eval.csv", "--init", config.output, "--output", "run"),
            ]
        else:
            record.next_command = [
                *("bert-pipeline", "export", "--run", config.output, "--output", "exported")
            ]

    return run_job(
        "import-weights",
        config,
        options,
        output=config.output,
        output_is_directory=True,
        inputs=[config.source],
        body=body,
    )


def default_task(directory: ModelDirectory) -> dict[str, Any] | None:
    """The `task.json` of a fine-tuned classifier, with the default columns; None for other heads.

    Whoever fine-tuned it elsewhere left no note of column names, nor of the longest row.
    """
    if not chooses_one_label(directory):
        return None
    return ClassificationTask(
        labels=tuple(classifier_labels(directory)),
        text_column=FinetuneConfig.text_column,
        text_pair_column=FinetuneConfig.text_pair_column,
        label_column=FinetuneConfig.label_column,
        max_seq_length=min(_DEFAULT_LENGTH, directory.config.max_position_embeddings),
    ).settings()
