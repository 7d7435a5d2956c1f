"""`train`: pretraining records to a run directory with the best model in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bert_tf.config.bert import BertConfig, read_bert_config, sized_config
from bert_tf.config.console import Console
from bert_tf.config.errors import UsageError
from bert_tf.config.sections.training import TrainConfig
from bert_tf.data.atomic import write_text_atomically
from bert_tf.data.pretraining_data import PretrainingData
from bert_tf.data.wordpiece import read_vocab, vocab_fingerprint
from bert_tf.training.curve import loss_curve_lines
from bert_tf.training.pretraining import PretrainingResult, pretrain
from bert_tf.training.strategy import is_chief_process
from bert_tf.weights.model_directory import ModelDirectory, read_model_directory
from pipeline.artifacts import read_manifest
from pipeline.jobs.job import JobRecord, RunOptions, run_job

_SPEED_AND_SAFETY = (
    "log_every",
    "checkpoint_minutes",
    "checkpoint_every",
    "keep_checkpoints",
    "steps_per_call",
)


def run(config: TrainConfig, options: RunOptions) -> dict[str, Any]:
    """Pretrains, or goes on where an interrupted run was; returns the manifest.

    Of several workers only the chief writes; the others train along and return {}.

    Raises:
        UsageError: data, vocabulary and model do not fit each other.
        InputError: damaged data, or a loss that is not finite.
        StoppedEarly: a stop was asked for; the same command goes on.
    """
    if not Path(config.data).is_dir():
        raise UsageError(
            f"--data {config.data}: no such folder; make it with: bert-pipeline preprocess"
        )
    data = PretrainingData.from_manifest(config.data, read_manifest(config.data))
    vocab = _read_data_vocab(data)
    initial = read_model_directory(config.init) if config.init else None
    bert_config = _model_config(config, data, initial)

    def train() -> PretrainingResult:
        return pretrain(
            config,
            bert_config=bert_config,
            data=data,
            vocab=vocab,
            initial=initial,
            console=options.console,
        )

    if not is_chief_process(config.strategy):
        return _train_along(config, options, train)

    def body(record: JobRecord) -> None:
        output = Path(config.output)
        if options.resume and not (output / "checkpoints").is_dir():
            options.console.say(f"{output}: no checkpoint to resume from; starting at step 0")
        write_text_atomically(output / "vocab.txt", "".join(f"{piece}\n" for piece in vocab))
        with record.stage("train"):
            result = train()
        _report(config, data, result, record)

    return run_job(
        "train",
        config,
        options,
        output=config.output,
        output_is_directory=True,
        inputs=[path for path in (config.data, config.model_config, config.init) if path],
        body=body,
        ignored_keys=_SPEED_AND_SAFETY,
        can_resume=True,
    )


def _read_data_vocab(data: PretrainingData) -> list[str]:
    path = Path(data.directory) / "vocab.txt"
    vocab = read_vocab(path)
    if vocab_fingerprint(vocab) != data.vocab_sha256:
        raise UsageError(
            f"{path}: not the vocabulary that the records in {data.directory} were made with; "
            "put that one back, or make the data again"
        )
    return vocab


def _model_config(
    config: TrainConfig, data: PretrainingData, initial: ModelDirectory | None
) -> BertConfig:
    if initial is not None:
        if vocab_fingerprint(initial.vocab) != data.vocab_sha256:
            raise UsageError(
                f"--init {config.init} has another vocabulary than the records in "
                f"{data.directory}; preprocess with --vocab {initial.path / 'vocab.txt'}"
            )
        bert_config, source = initial.config, f"--init {config.init}"
    elif config.model_config is not None:
        bert_config = read_bert_config(config.model_config)
        source = f"--model-config {config.model_config}"
    else:
        bert_config = sized_config(str(config.size), data.vocab_size)
        source = f"--size {config.size}"
    data.check_model(bert_config, source)
    return bert_config


def _train_along(config: TrainConfig, options: RunOptions, train: Any) -> dict[str, Any]:
    if read_manifest(config.output) is not None and not options.overwrite:
        options.console.say(f"{config.output} is finished already; nothing to do")
        return {}
    train()
    return {}


def _report(
    config: TrainConfig, data: PretrainingData, pretrained: PretrainingResult, record: JobRecord
) -> None:
    output, result = Path(config.output), pretrained.training
    record.counts = {"steps": result.step, "examples": pretrained.sequences}
    record.metrics = {"train": result.train, "eval": result.eval, **result.notes}
    record.extra = {
        "training_seconds": round(result.seconds, 3),
        "vocab_sha256": data.vocab_sha256,
        "packing": pretrained.packing,
    }
    _say_curve(output / "metrics.jsonl", record.console)
    record.made = [
        (str(output / "best"), "the model with the lowest eval loss, a HuggingFace folder"),
        (str(output / "metrics.jsonl"), "losses, accuracies and speed by step"),
        (str(output / "tensorboard"), "the same for TensorBoard"),
    ]
    record.next_command = [
        *("bert-pipeline", "finetune", "classification", "--init", config.output),
        *("--train", "train.csv", "--eval", "dev.csv", "--output", f"{output}-finetuned"),
    ]


def _say_curve(metrics_path: Path, console: Console) -> None:
    for line in loss_curve_lines(metrics_path):
        console.say(line)
