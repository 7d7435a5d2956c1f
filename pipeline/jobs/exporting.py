"""`export`: makes a model that others can load from a run."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from bert_tf.base.cards import front_matter
from bert_tf.base.checksums import CARD, SUMS, read_sums, write_sums
from bert_tf.base.errors import UsageError
from bert_tf.base.files import naming_file, remove, sync_tree, write_text_atomically
from bert_tf.base.json_files import read_json_object
from bert_tf.config.registries import FLOAT32, INT8, SERVING, TEXT
from bert_tf.config.sections import ExportConfig
from bert_tf.engines.probes import PROBES, probe_texts, write_probes
from bert_tf.engines.registry import SERVING_VERSION, is_exported
from bert_tf.export.int8 import Int8Comparison, add_int8_graph, check_quantizable, int8_engine
from bert_tf.export.loading import (
    TrainedModel,
    directory_for_task,
    load_trained_model,
    unread_heads,
)
from bert_tf.export.model_card import HUB_KEYS, card_of, hub_metadata, model_card
from bert_tf.export.registry import FORMATS, FormatEntry
from bert_tf.tasks.profile.profile import read_profile
from bert_tf.tasks.registry import pretrained_tasks, task_from_settings, with_task_of_weights
from bert_tf.training.best_model import BestModel
from bert_tf.weights.model_directory import ModelDirectory, read_model_directory
from bert_tf.weights.sentence_transformers import MODULES, write_recipe
from pipeline.jobs.task_reports import RejectsCheck, check_inputs_exist, warn_of_unfinished_run
from pipeline.outputs.job import JobRecord, run_job
from pipeline.outputs.job_spec import JobSpec, RunOptions
from pipeline.outputs.manifest import JOB_FILES, read_manifest


def run(config: ExportConfig, options: RunOptions) -> dict[str, Any]:
    """Export a run; return the manifest.

    Args:
        config: of `export`.
        options: how the command runs.

    Raises:
        UsageError: the run does not fit the format or task, or a package is missing.
        InputError: the run is damaged, or int8 lowers the metric too much.
    """
    entry = FORMATS[config.format]
    entry.check_installed()
    directory = read_model_directory(config.run)
    options.console.info(*directory.notes)
    run_manifest = read_manifest(config.run)
    check_inputs_exist(config.more_inputs)
    if config.task is not None:
        _check_run(config, run_manifest)
        directory = directory_for_task(directory, config)
    else:
        directory = with_task_of_weights(directory, options.console)
    warn_of_unfinished_run(config.run, options.console)
    if config.precision == INT8:
        check_quantizable(entry, directory)
    more = check_inputs_exist({"calibrate": config.calibrate, **config.more_inputs})
    inputs = {"run": [str(directory.path)], **more}
    return run_job(
        JobSpec(config=config, inputs=inputs),
        options,
        lambda record: _export(config, options, directory, run_manifest or {}, record),
    )


def _export(
    config: ExportConfig,
    options: RunOptions,
    directory: ModelDirectory,
    run_manifest: dict[str, Any],
    record: JobRecord,
) -> None:
    entry = FORMATS[config.format]
    output = Path(config.output)
    best = BestModel.of_manifest(run_manifest)
    with record.stage("load"):
        trained = dataclasses.replace(
            load_trained_model(directory), pooling=config.pooling, normalize=config.normalize
        )
    written = entry.load(**{name: getattr(config, name) for name in entry.options})
    folder = output / SERVING_VERSION if config.layout == SERVING else output
    folder.mkdir(exist_ok=True)
    with record.stage("write"), naming_file(output):
        notes = written.write(trained, folder, options.console)
        notes += _write_recipe(trained, entry, folder)
        _copy_profile(directory, folder)
        if config.inputs == TEXT and is_exported(folder):
            _write_probes(trained, folder)
        unread = unread_heads(trained)
        if unread and trained.task is None:
            notes.append(f"the model's head is left out: {', '.join(unread)}")
    comparison = None
    if config.precision == INT8:
        with record.stage("quantize"):
            comparison = _quantize(config, options, directory, folder, best)
    with record.stage("describe"):
        card = _front_matter(config, trained, run_manifest) + model_card(
            directory.config,
            card_of(trained),
            lowercase=directory.lowercase,
            manifest=run_manifest,
            written=written,
            notes=notes,
            comparison=comparison,
        )
        names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
        # People edit the card before they publish it.
        known = {*JOB_FILES, SUMS, CARD, *read_sums(folder)}
        write_sums(folder, sorted(names - known))
        write_text_atomically(output / CARD, card)
        sync_tree(output)  # TensorFlow and Keras do not
    options.console.warn(*notes)
    record.extra = {"task": directory.task, "format": config.format, "notes": notes}
    if comparison is not None:
        record.extra["int8"] = dataclasses.asdict(comparison)
        options.console.info(str(comparison))
    if best is not None:
        record.extra["best_model"] = dataclasses.asdict(best)
    record.made = [
        (str(output), "the model"),
        (str(output / CARD), "its data and metrics, and how to load it"),
    ]
    if entry.has_pooling:
        record.suggest("embed", model=config.output, input="texts.csv", output="vectors.parquet")
    elif is_exported(folder) and config.inputs == TEXT and directory.task is not None:
        record.suggest("score", model=config.output, input="new.csv", output="scored.csv")


def _check_run(config: ExportConfig, manifest: dict[str, Any] | None) -> None:
    """Raise UsageError if the run has not trained the head that `--task` needs."""
    fault_of = pretrained_tasks()[str(config.task)].run_fault
    fault = None if fault_of is None or manifest is None else fault_of(manifest)
    if fault is not None:
        raise UsageError(f"--task {config.task}: {config.run}: {fault}")


def _front_matter(config: ExportConfig, trained: TrainedModel, run_manifest: dict[str, Any]) -> str:
    """Return the card's metadata for the Hugging Face Hub."""
    entry = FORMATS[config.format]
    # A layout for serving has no weights that the library of the format would load.
    library_name = None if config.layout == SERVING else entry.library_name
    metadata = hub_metadata(
        card_of(trained),
        dataclasses.replace(entry, library_name=library_name),
        name=Path(config.output).resolve().name,
        manifest=run_manifest,
        source=trained.directory.path,
        user_keys={
            "license": config.license,
            "language": config.languages,
            "base_model": config.base_model,
        },
    )
    return front_matter(metadata, HUB_KEYS)


def _write_recipe(trained: TrainedModel, entry: FormatEntry, folder: Path) -> list[str]:
    """Write the recipe for vectors if the library of the format does not store it.

    Returns:
        A note on it for the card, if it was written.
    """
    recipe = trained.recipe
    if recipe is None or (folder / MODULES).is_file():
        return []
    write_recipe(folder, recipe, hidden_size=trained.directory.config.hidden_size)
    return [
        f"a {entry.title} does not store how the model computes text vectors ({recipe}); {MODULES} "
        "in the folder does, for import-weights"
    ]


def _write_probes(trained: TrainedModel, folder: Path) -> None:
    """Store scores that every engine has to give on every machine."""
    task = trained.task
    if task is None or task.declaration.host is None:
        return
    texts = probe_texts(trained.tokenizer.vocab)
    value = task.declaration.trial_value
    rows = {name: [value(name, text) for text in texts] for name in task.host().input_names}
    scores = task.reference_outputs(trained.model, trained.tokenizer, rows)
    write_probes(folder, rows, scores, FLOAT32)


def _copy_profile(directory: ModelDirectory, folder: Path) -> None:
    """Copy the profile of a fine-tuned model's rows beside a model that `score` reads."""
    profile = read_profile(directory.path)
    if profile is not None and directory.task is not None and is_exported(folder):
        profile.write(folder)


def _quantize(
    config: ExportConfig,
    options: RunOptions,
    directory: ModelDirectory,
    folder: Path,
    best: BestModel | None,
) -> Int8Comparison:
    """Add an int8 graph to a written model; remove the model if the metric drops too much."""
    assert config.calibrate is not None
    try:
        task = task_from_settings(directory.task, config.run)
        rows = task.read(config.calibrate, options.console)
        RejectsCheck(options.max_rejects, None, options.console)([rows])
        comparison = add_int8_graph(
            FORMATS[config.format],
            folder,
            task,
            rows,
            metric=None if best is None else best.metric,
            console=options.console,
        )
        comparison.check(config.max_metric_drop)
        if (folder / PROBES).is_file():
            probes = read_json_object(folder / PROBES)["rows"]
            engine = int8_engine(FORMATS[config.format]).load(
                folder, is_checked=True, precision=INT8, allows_drift=True
            )
            write_probes(folder, probes, engine.predict(probes), INT8)
    except BaseException:
        for path in folder.iterdir():
            if path.name not in JOB_FILES:
                remove(path)
        raise
    return comparison
