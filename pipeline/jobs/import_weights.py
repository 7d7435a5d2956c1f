"""`import-weights`: converts other libraries' BERT weights to a model directory."""

from __future__ import annotations

from typing import Any

from bert_tf.base.wording import quantity
from bert_tf.config.sections import ImportWeightsConfig
from bert_tf.tasks.registry import TASKS, task_of_weights
from bert_tf.weights.import_weights import architecture, read_source, write_imported
from bert_tf.weights.resizing import with_layers, with_positions, with_vocab
from pipeline.outputs.job import JobRecord, run_job
from pipeline.outputs.job_spec import JobSpec, RunOptions
from pipeline.outputs.manifest import check_files


def run(config: ImportWeightsConfig, options: RunOptions) -> dict[str, Any]:
    """Convert weights; return the manifest.

    Args:
        config: of `import-weights`.
        options: how the command runs.

    Raises:
        UsageError: the source is no BERT, or options do not fit it.
        InputError: its files are damaged.
    """
    directory = read_source(config.source)
    before = directory.config
    if config.layers is not None:
        directory = with_layers(directory, config.chosen_layers)
    if config.max_position_embeddings is not None:
        directory = with_positions(directory, config.max_position_embeddings)
    if config.vocab is not None:
        check_files(config.vocab)
        directory = with_vocab(directory, config.vocab)

    after = directory.config

    def body(record: JobRecord) -> None:
        task_inside = None if directory.task else task_of_weights(directory)
        task = directory.task if task_inside is None else task_inside.settings()
        with record.stage("convert"):
            write_imported(directory, config.output, task=task)
        positions = after.max_position_embeddings
        entries = after.vocab_size - before.vocab_size
        if positions > before.max_position_embeddings:
            record.console.info(
                f"positions: {before.max_position_embeddings} interpolated to {positions}; train "
                "on long sequences before relying on them"
            )
        if entries > 0:
            record.console.info(f"vocabulary: {quantity(entries, 'new entry')}")
        record.console.info(*directory.notes)
        record.counts = {"tensors": len(directory.tensors), "vocab_entries": len(directory.vocab)}
        record.extra = {
            "architecture": architecture(directory),
            "lowercase": directory.lowercase,
            "model": after.as_dict(),
            "task": task,
            "notes": list(directory.notes),
        }
        record.made.append((config.output, f"a {architecture(directory)}"))
        if task is None:
            files = {"train": "train.csv", "eval": "eval.csv"}
            record.suggest("finetune", next(iter(TASKS)), **files, init=config.output, output="run")
        else:
            record.suggest("export", run=config.output, output="exported")

    inputs = {"source": [config.source], "vocab": [config.vocab] if config.vocab else []}
    return run_job(JobSpec(config=config, inputs=inputs), options, body)
