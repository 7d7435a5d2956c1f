"""`profile.json`: statistics of the rows that a model was made from, without any of their texts.

`finetune` writes it beside the weights, `export` copies it, and `score` reads it where a flag needs
it. Importing this module imports no TensorFlow.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from bert_tf.base.checksums import check_sums, write_text_and_sum
from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.json_files import read_json_object
from bert_tf.serving.signatures import PROBABILITY_DIGITS
from bert_tf.tasks.profile.distance import LEAST_TRAINING_ROWS, TrainingDistance
from bert_tf.tasks.profile.texts import TextProfile

PROFILE = "profile.json"
VERSION = 1
# Evaluation rows that are kept: with 5,000, the standard error of a share is below 0.008, and the
# file stays below 200 kB.
MOST_ROWS = 5000


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluatedRows:
    """Predictions of a classifier for its evaluation rows; all arrays are [rows].

    Attributes:
        rows: number of evaluated rows, of which at most `MOST_ROWS` are kept.
        labels: the labels, in the order of their numbers.
        gold: number of each row's label, int64.
        predicted: number of the predicted label, int64.
        score: probability of the predicted label, with six decimals as rows show it, float64.
        gold_score: probability of the row's label, likewise.
    """

    rows: int
    labels: tuple[str, ...]
    gold: np.ndarray
    predicted: np.ndarray
    score: np.ndarray
    gold_score: np.ndarray

    @classmethod
    def of(
        cls,
        labels: Sequence[str],
        gold: np.ndarray,
        predicted: np.ndarray,
        probabilities: np.ndarray,
    ) -> Self:
        """Keep evenly spread rows of all.

        Args:
            labels: the labels.
            gold, predicted: int [rows].
            probabilities: float [rows, labels].
        """
        number = len(gold)
        kept = np.unique(np.linspace(0, number - 1, min(number, MOST_ROWS)).astype(np.int64))
        rounded = np.asarray(probabilities, np.float64)[kept].round(PROBABILITY_DIGITS)
        chosen = np.asarray(predicted)[kept]
        right = np.asarray(gold)[kept]
        return cls(
            rows=number,
            labels=tuple(labels),
            gold=right.astype(np.int64),
            predicted=chosen.astype(np.int64),
            score=rounded.max(axis=1),
            gold_score=rounded[np.arange(len(kept)), right],
        )

    @property
    def is_right(self) -> np.ndarray:
        """Whether the prediction is the row's label, bool [rows]."""
        return self.gold == self.predicted

    def as_json(self) -> dict[str, Any]:
        """Return the entry `evaluation`."""
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in vars(self).items()
        }

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Self:
        """Read `as_json`; KeyError, TypeError or ValueError if it is something else."""
        numbers = {name: np.array(entry[name], np.int64) for name in ("gold", "predicted")}
        scores = {name: np.array(entry[name], np.float64) for name in ("score", "gold_score")}
        arrays = {**numbers, **scores}
        if len({values.shape for values in arrays.values()}) > 1:
            raise ValueError("columns of different lengths")
        return cls(rows=int(entry["rows"]), labels=tuple(entry["labels"]), **arrays)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Profile:
    """The content of `profile.json`; None for a part that the run or the task does not have.

    Attributes:
        evaluation: predictions of the evaluation rows.
        texts: measures of the texts of the training rows.
        distance: distances of texts from the training rows.
    """

    evaluation: EvaluatedRows | None = None
    texts: TextProfile | None = None
    distance: TrainingDistance | None = None

    def write(self, folder: Path) -> None:
        """Write the file into a model directory, with its checksum if the others have one."""
        entries = {
            field.name: getattr(self, field.name).as_json()
            for field in dataclasses.fields(self)
            if getattr(self, field.name) is not None
        }
        text = json.dumps({"version": VERSION, **entries}, ensure_ascii=False)
        write_text_and_sum(folder, PROFILE, f"{text}\n")


def read_profile(folder: str | Path) -> Profile | None:
    """Read the profile of a model directory or exported model; None if it has none.

    Raises:
        InputError: it is damaged, has changed since it was written, or is of a later release.
    """
    path = Path(folder) / PROFILE
    if not path.is_file():
        return None
    check_sums(Path(folder), lambda name: name == PROFILE)
    document = read_json_object(path)
    if document.get("version") != VERSION:
        raise InputError(
            f"{path}: has version {document.get('version')!r} and this release reads {VERSION}; "
            "export the model again"
        )
    try:
        kinds = {"evaluation": EvaluatedRows, "texts": TextProfile, "distance": TrainingDistance}
        entries = {
            name: kind.from_json(document[name])  # type: ignore[attr-defined]
            for name, kind in kinds.items()
            if document.get(name) is not None
        }
        return Profile(**entries)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: damaged ({error!r}); export the model again") from None


def evaluated_rows(folder: str | Path, flag: str) -> EvaluatedRows:
    """Return the predictions of a model for its evaluation rows.

    Args:
        folder: the exported model.
        flag: the flag that needs them, for the message.

    Raises:
        UsageError: the model has none.
        InputError: see `read_profile`.
    """
    profile = read_profile(folder)
    if profile is None:
        raise UsageError(
            f"{flag}: {folder} has no {PROFILE}, which this flag reads: an earlier release "
            "fine-tuned or exported it; run finetune and export again"
        )
    if profile.evaluation is None:
        raise UsageError(
            f"{flag}: {folder} keeps nothing of evaluation rows: it was fine-tuned without any, or "
            "its task predicts no labels with probabilities; run finetune with "
            "--eval or --eval-fraction, and export that"
        )
    return profile.evaluation


def training_distance(folder: str | Path, flag: str) -> TrainingDistance:
    """Return the part of a model's profile that measures distances from its training rows.

    Args:
        folder: the exported model.
        flag: the flag that needs it, for the message.

    Raises:
        UsageError: the profile has no such part.
        InputError: see `read_profile`.
    """
    profile = read_profile(folder)
    if profile is None or profile.distance is None:
        raise UsageError(
            f"{flag}: {folder} does not know how far texts are from its training rows: an earlier "
            "release fine-tuned it, or it had no evaluation rows or fewer than "
            f"{LEAST_TRAINING_ROWS} training rows; run finetune with --eval or --eval-fraction, "
            "and export that"
        )
    return profile.distance
