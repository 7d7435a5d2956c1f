"""Folders that other libraries load: HuggingFace's, KerasHub's, Google's and TF Model Garden's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bert_tf.export.loading import TrainedModel
from bert_tf.weights.google_checkpoint import write_google_checkpoint
from bert_tf.weights.model_directory import model_tensors, write_model_directory
from bert_tf.weights.model_garden_checkpoint import write_model_garden_checkpoint


def write_huggingface_folder(trained: TrainedModel, output: Path) -> None:
    """Writes the model directory that transformers' `AutoModel…` classes load."""
    write_model_directory(
        output,
        trained.model,
        vocab=trained.directory.vocab,
        lowercase=trained.directory.lowercase,
        task=trained.directory.task,
    )


def write_keras_hub_folder(trained: TrainedModel, output: Path) -> list[str]:
    """Writes a preset for KerasHub's `from_preset`; returns what it lacks.

    Raises:
        UsageError: KerasHub's BERT has no such activation.
    """
    # Importing KerasHub takes seconds, and no other format needs it.
    from bert_tf.weights.keras_hub_preset import write_keras_hub_preset

    longest = trained.directory.config.max_position_embeddings
    if trained.task is not None and trained.task.card().is_keras_hub_task:
        longest = trained.task.max_seq_length
    return write_keras_hub_preset(
        output,
        **_contents(trained),
        max_seq_length=longest,
    )


def write_google_folder(trained: TrainedModel, output: Path) -> list[str]:
    """Writes a checkpoint for the scripts of google-research/bert; returns what differs there."""
    return write_google_checkpoint(output, **_contents(trained))


def write_model_garden_folder(trained: TrainedModel, output: Path) -> list[str]:
    """Writes a checkpoint for TF Model Garden; returns what it lacks and what differs there."""
    return write_model_garden_checkpoint(output, **_contents(trained))


def _contents(trained: TrainedModel) -> dict[str, Any]:
    """What all checkpoints and presets are written from."""
    directory = trained.directory
    return {
        "config": directory.config,
        "vocab": directory.vocab,
        "lowercase": directory.lowercase,
        "tensors": model_tensors(trained.model),
    }
