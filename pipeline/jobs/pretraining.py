"""`train`: trains on pretraining records; the run directory has the best model in it."""

from __future__ import annotations

import dataclasses
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.base.files import RemotePath, write_text_atomically
from bert_tf.config.bert import BertConfig, sized_config
from bert_tf.config.bert_file import read_bert_document
from bert_tf.config.registries import TENSORBOARD
from bert_tf.config.sections.pretraining import PAIR_ACCURACY, TrainConfig, loss_of
from bert_tf.config.sections.tables import StorageConfig
from bert_tf.data.records.dataset_info import TOKEN_COUNTS_FILE, PretrainingData
from bert_tf.data.text.vocab_file import read_vocab, vocab_fingerprint
from bert_tf.data.text.vocabulary_files import VOCAB
from bert_tf.pretraining.findings import (
    UNIGRAM_ENTROPY,
    beats_frequencies,
    plan_finding,
    run_findings,
    steps_beyond_frequencies,
)
from bert_tf.pretraining.minimal_pairs import read_minimal_pairs
from bert_tf.pretraining.phases import pretraining_phases
from bert_tf.pretraining.plan import preview_pretraining
from bert_tf.pretraining.pretraining import PretrainingResult, pretrain
from bert_tf.tasks.registry import TASKS
from bert_tf.training.best_model import BestModel
from bert_tf.training.distribution import is_chief_process
from bert_tf.training.loop import TrainingResult
from bert_tf.training.metrics_log import read_metrics
from bert_tf.weights.model_directory import ModelDirectory, read_model_directory
from pipeline.beam.stored_path import path_of
from pipeline.jobs.task_reports import (
    log_costs,
    log_if_nothing_resumes,
    train_along,
    warn_of_unfinished_run,
)
from pipeline.outputs.job import JobRecord, run_job
from pipeline.outputs.job_spec import JobSpec, RunOptions
from pipeline.outputs.manifest import check_files, read_manifest
from pipeline.outputs.stored_run import StoredRun, fetched_records
from pipeline.report.artifact import loss_curve_lines


def run(config: TrainConfig, storage: StorageConfig, options: RunOptions) -> dict[str, Any]:
    """Pretrain, or resume an interrupted run.

    Of several workers only the chief writes. Data on other storage is copied to a local folder, and
    the run published from there after each checkpoint.

    Args:
        config: of `train`.
        storage: options of other storage.
        options: how the command runs.

    Returns:
        The manifest, or a dry run's preview; {} if this process is not the chief.

    Raises:
        UsageError: data, vocabulary and model do not fit each other.
        InputError: data is damaged, or a loss is not finite.
        StoppedEarly: a stop was asked for.
    """
    places = [config.output, *_data_folders(config).values()]
    if not any(isinstance(path_of(place), RemotePath) for place in places):
        return _run(config, options, Path())
    from pipeline.beam.storage import use_storage_options  # Beam: others need not load it

    use_storage_options(storage.options)
    with tempfile.TemporaryDirectory(prefix="bert-pipeline-train-") as folder:
        return _run(config, options, Path(folder))


def _run(config: TrainConfig, options: RunOptions, folder: Path) -> dict[str, Any]:
    """Pretrain with a local folder for copies from other storage."""
    data = [_read_data(folder) for folder in _data_folders(config).values()]
    vocab = _read_vocab(data)
    initial = read_model_directory(config.init) if config.init else None
    spec = _spec(config, initial)
    bert_config = _model_config(config, data, initial, options.console)
    pairs = read_minimal_pairs(config.eval_likelihood) if config.eval_likelihood else None
    sets = {name: _read_set(name, path, data[0]) for name, path in config.eval_sets.items()}

    def local(records: PretrainingData, name: str) -> PretrainingData:
        return fetched_records(records, folder / name, options.console)

    def local_data() -> list[PretrainingData]:
        return [local(records, f"data-{number}") for number, records in enumerate(data)]

    if config.dry_run:
        return preview_pretraining(
            config, bert_config=bert_config, data=local_data(), console=options.console
        )

    def train(stored: StoredRun | None) -> PretrainingResult:
        output = config.output if stored is None else str(stored.folder)
        return pretrain(
            dataclasses.replace(config, output=output),
            bert_config=bert_config,
            data=local_data(),
            vocab=vocab,
            initial=initial,
            console=options.console,
            pairs=pairs,
            sets={name: local(records, f"eval-{name}") for name, records in sets.items()},
            mirror=stored,
        )

    def stored_run(check_held: Callable[[], None] | None) -> StoredRun | None:
        place = spec.place.path
        if not isinstance(place, RemotePath):
            return None
        run = folder / "run"
        return StoredRun(place, run, console=options.console, check_held=check_held)

    def body(record: JobRecord) -> None:
        log_if_nothing_resumes(record.folder, options)
        _warn_before(config, data, options.console)
        stored = stored_run(record.check_held)
        if stored is not None:
            stored.fetch()  # some files are read before the checkpoint
        with record.stage("train"):
            result = train(stored)
        written = stored.folder if stored is not None else record.folder.path
        write_text_atomically(written / "vocab.txt", "".join(f"{piece}\n" for piece in vocab))
        if stored is not None:
            stored.publish()
            record.sha256 = stored.sha256()
        _report(config, result, vocab, record, metrics=written / "metrics.jsonl")

    if not is_chief_process(config.strategy):
        return train_along(spec, options, lambda: train(stored_run(None)))
    return run_job(spec, options, body)


def _spec(config: TrainConfig, initial: ModelDirectory | None) -> JobSpec:
    return JobSpec(
        config=config,
        inputs={
            **{key: [folder] for key, folder in _data_folders(config).items()},
            "model_config": [config.model_config] if config.model_config else [],
            "init": [str(initial.path)] if initial else [],
            **{f"eval.{name}": [folder] for name, folder in config.eval_sets.items()},
            "eval_likelihood": [config.eval_likelihood] if config.eval_likelihood else [],
        },
        # Phases that have steps say themselves how many there are.
        ignored_keys=("steps",) if any(phase.steps for phase in config.phases) else (),
        can_resume=True,
        # More steps would move the boundaries of phases; a run that ended by the clock stays ended.
        extendable_key=None if config.phases or config.max_minutes else "steps",
        reads_inputs_first=True,  # records have checksums of their own
        may_be_remote=True,
    )


def _warn_before(config: TrainConfig, data: list[PretrainingData], console: Console) -> None:
    if config.init:
        warn_of_unfinished_run(config.init, console)
    for records in data:
        console.warn(*(f"{records.directory}: {note}" for note in records.notes))
    if config.max_minutes:  # which end the run, not its steps
        return
    planned = pretraining_phases(config, data)
    finding = plan_finding((phase.data, phase.steps, phase.batch_size) for phase in planned)
    if finding is not None:
        console.warn(finding)


def _data_folders(config: TrainConfig) -> dict[str, str]:
    """Return the folders of records by key, in the order of the phases."""
    if not config.phases:
        return {"data": str(config.data)}
    return {f"phases[{i}].data": str(phase.data) for i, phase in enumerate(config.phases)}


def _read_data(folder: str, flag: str = "--data ") -> PretrainingData:
    path = path_of(folder)
    if not path.is_dir():
        fault = "is a file" if path.exists() else "no such folder"
        raise UsageError(f"{flag}{folder}: {fault}; give a folder made by bert-pipeline preprocess")
    data = PretrainingData.from_manifest(folder, read_manifest(folder))
    check_files(folder, {"vocab.txt", TOKEN_COUNTS_FILE})  # records have checksums of their own
    return data


def _read_set(name: str, folder: str, trained_on: PretrainingData) -> PretrainingData:
    """Read the description of a set of `--eval`; raise UsageError if it cannot be evaluated on."""
    records = _read_data(folder, flag=f"--eval {name}=")
    if not records.eval_shards:
        raise UsageError(
            f"--eval {name}={folder}: has no eval shards; preprocess with --eval-fraction above 0"
        )
    known = (trained_on.vocab_sha256, trained_on.lowercase)
    if (records.vocab_sha256, records.lowercase) != known:
        vocab = path_of(trained_on.directory) / "vocab.txt"
        raise UsageError(
            f"--eval {name}={folder}: was made with another vocabulary or casing than the records "
            f"in {trained_on.directory}; preprocess it with --vocab {vocab}"
        )
    return records


def _read_vocab(data: list[PretrainingData]) -> list[str]:
    first, *others = data
    path = path_of(first.directory) / "vocab.txt"
    vocab = read_vocab(path)
    if vocab_fingerprint(vocab) != first.vocab_sha256:
        raise UsageError(
            f"{path}: not the vocabulary that the records in {first.directory} were made with; "
            "restore it, or run preprocess again"
        )
    for other in others:
        if (other.vocab_sha256, other.lowercase) != (first.vocab_sha256, first.lowercase):
            raise UsageError(
                f"the records in {other.directory} were made with another vocabulary or casing "
                f"than those in {first.directory}; preprocess both with --vocab {path}"
            )
    return vocab


def _model_config(
    config: TrainConfig,
    data: list[PretrainingData],
    initial: ModelDirectory | None,
    console: Console,
) -> BertConfig:
    notes: tuple[str, ...] = ()
    if initial is not None:
        if vocab_fingerprint(initial.vocab) != data[0].vocab_sha256:
            raise UsageError(
                f"--init {config.init} has another vocabulary than the records in "
                f"{data[0].directory}; {_vocabulary_to_take(initial)}"
            )
        bert_config = initial.config
        notes = initial.notes
        source = f"--init {config.init}"
    elif config.model_config is not None:
        document = read_bert_document(config.model_config)
        bert_config = document.config
        notes = document.notes
        source = f"--model-config {config.model_config}"
    else:
        bert_config = sized_config(str(config.size), data[0].vocab_size)
        source = f"--size {config.size}"
    for records in data:
        records.check_model(bert_config, source)
    console.info(*notes)
    return config.with_dropout(bert_config)


def _vocabulary_to_take(initial: ModelDirectory) -> str:
    """Say how to preprocess for a model whose vocabulary differs."""
    path = initial.path / VOCAB
    if path.is_file() and read_vocab(path) == initial.vocab:
        return f"preprocess with --vocab {path}"
    # Tokens were added to it, its embeddings have more rows, or it lies in tokenizer.json.
    return (
        f"its folder has no {VOCAB} with all {len(initial.vocab):,} entries: run bert-pipeline "
        f"import-weights on it, and preprocess with the {VOCAB} that it writes"
    )


def _report(
    config: TrainConfig,
    pretrained: PretrainingResult,
    vocab: list[str],
    record: JobRecord,
    *,
    metrics: Path,
) -> None:
    output = record.folder.path
    result = pretrained.training
    record.counts = {"steps": result.step, "examples": pretrained.sequences}
    best = BestModel.of_notes(result.notes, metric=config.selection_metric)
    record.metrics = {"train": result.train, "eval": result.eval, "best": result.notes["best"]}
    record.extra = {
        "training_seconds": round(result.seconds, 3),
        "vocab_sha256": vocab_fingerprint(vocab),
        "best_model": dataclasses.asdict(best),
        "stopped_early": result.stopped_early,
        "extended_from": result.extended_from,
        "depends_on_speed": bool(config.max_minutes),
    }
    if config.phases:
        record.extra["phases"] = [dataclasses.asdict(phase) for phase in pretrained.phases]
    else:
        only = pretrained.phases[0]
        record.extra["gradient_accumulation_steps"] = only.gradient_accumulation_steps
        record.extra["packing"] = only.packing
    record.console.info(*loss_curve_lines(metrics))
    _log_end(result, record.console)
    if config.eval_likelihood:
        _log_pairs(config, result, record.console)
    _log_sets(config, result, record.console)
    log_costs(config, result.seconds, record.console)
    last_phase = result.step - pretrained.phases[-1].steps
    findings = run_findings(read_metrics(metrics), vocab_size=len(vocab), first_step=last_phase)
    record.extra["notes"] = findings
    record.console.warn(*findings)
    record.made = [
        (str(output / "best"), f"{best}; a HuggingFace folder"),
        (str(output / "metrics.jsonl"), "losses, accuracies and speed by step"),
    ]
    if TENSORBOARD in config.report_to:
        record.made.append((str(output / "tensorboard"), "the same for TensorBoard"))
    if not beats_frequencies({**(result.eval or {}), **result.notes["best"]}):
        if not (config.phases or config.max_minutes):
            steps = steps_beyond_frequencies(result.step)
            record.suggest("train", config=str(output / "config.yaml"), steps=str(steps))
    elif not isinstance(output, RemotePath):  # which `finetune` does not read
        files = {"init": config.output, "train": "train.csv", "eval": "dev.csv"}
        record.suggest("finetune", next(iter(TASKS)), **files, output=f"{output}-finetuned")


def _log_pairs(config: TrainConfig, result: TrainingResult, console: Console) -> None:
    accuracy = (result.eval or {}).get(PAIR_ACCURACY)
    if accuracy is not None:
        console.info(
            f"last pair accuracy {accuracy:.4f} on {config.eval_likelihood}: the good sentence is "
            "likelier than the bad one (0.5 by chance)"
        )


def _log_sets(config: TrainConfig, result: TrainingResult, console: Console) -> None:
    """Report gains and losses on the sets of `--eval`, at the last evaluation."""
    last = result.eval or {}
    for name in map(loss_of, config.eval_sets):
        if name not in last:
            continue
        change = last.get(f"{name}_change")
        if change is None:
            console.info(f"{name} {last[name]:.4f}")
        else:
            verb = "forgotten" if change > 0 else "gained"
            console.info(
                f"{name} {last[name]:.4f}, {abs(change):.4f} {verb} since the model of --init"
            )


def _log_end(result: TrainingResult, console: Console) -> None:
    if result.stopped_early:
        console.info(f"stopped early at step {result.step}: {result.stopped_early}")
    best = result.notes.get("best", {})
    if "mlm_loss" in best:
        entropy = (result.eval or {}).get(UNIGRAM_ENTROPY)
        beside = f"; unigram baseline {entropy:.4f}" if entropy else ""
        console.info(
            f"best held-out masked-LM loss {best['mlm_loss']:.4f}, "
            f"perplexity {math.exp(min(best['mlm_loss'], 700.0)):,.2f}, "
            f"at step {best['step']}{beside}"
        )
