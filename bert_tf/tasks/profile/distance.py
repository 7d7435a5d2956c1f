"""The distance of a text from the training rows, in the model's own vectors.

The distance is Mahalanobis', to the nearest mean of a label, with one covariance for all labels
(Lee et al. 2018, "A Simple Unified Framework for Detecting Out-of-Distribution Samples"; on texts
Podolskiy et al. 2021). There are often more dimensions than the rows can determine, so the
covariance is shrunk towards a multiple of the identity by the share of Ledoit & Wolf (2004), as
scikit-learn's `LedoitWolf` does. The profile keeps the means and a matrix that whitens vectors, in
16 bits, and the distances of the evaluation rows. The model was not trained on those, so they show
which distances are usual.
"""

from __future__ import annotations

import base64
import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from bert_tf.base.errors import UsageError

# Rows whose vectors are computed after training: 2,000 are enough for the covariance of 384
# dimensions, and a small model takes seconds.
MOST_TRAINING_ROWS = 2000
MOST_EVALUATION_ROWS = 1000
# With fewer training rows no distance is kept: their covariance is too uncertain.
LEAST_TRAINING_ROWS = 20
_DECIMALS = 4  # of kept distances
_ROUNDING = 1e-9  # of products with a share, which may be whole numbers but for float64
# The least variance of a direction: absolute, and as a share of the largest one.
_LEAST_VARIANCE = 1e-8
_LEAST_SHARE = 1e-6


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingDistance:
    """The training rows as a mean of each label, and usual distances from them.

    Attributes:
        means: float32 [labels that rows have, dimensions].
        whitening: float32 [dimensions, dimensions]; whitened vectors have covariance 1.
        evaluation: float64 [rows], distances of evaluation rows, rounded up, ascending.
    """

    means: np.ndarray
    whitening: np.ndarray
    evaluation: np.ndarray

    @classmethod
    def of(cls, vectors: np.ndarray, labels: np.ndarray, evaluation: np.ndarray) -> Self:
        """Fit to training rows.

        Args:
            vectors: float [rows, dimensions], of training rows.
            labels: int [rows], of training rows.
            evaluation: float [rows, dimensions], of evaluation rows.
        """
        wide = vectors.astype(np.float64)
        _, numbers = np.unique(labels, return_inverse=True)
        sums = np.zeros((numbers.max() + 1, wide.shape[1]))
        np.add.at(sums, numbers, wide)
        means = sums / np.bincount(numbers)[:, None]
        values, directions = np.linalg.eigh(shrunk_covariance(wide - means[numbers]))
        # Directions in which rows hardly differ would whiten by more than 16 bits hold.
        least = max(_LEAST_VARIANCE, _LEAST_SHARE * values.max())
        whitening = directions / np.sqrt(np.maximum(values, least))
        # Rounded to 16 bits like the kept ones, so that distances here and later are equal.
        fitted = cls(
            means=_as_kept(means), whitening=_as_kept(whitening), evaluation=np.empty(0, np.float64)
        )
        # Rounded up, so that the row whose distance is a limit keeps within it.
        scale = 10**_DECIMALS
        distances = np.ceil(np.sort(fitted.distances(evaluation)) * scale) / scale
        return dataclasses.replace(fitted, evaluation=distances)

    def distances(self, vectors: np.ndarray) -> np.ndarray:
        """Return the distance of each vector to the nearest mean, float64 [rows]."""
        whitened = vectors.astype(np.float32) @ self.whitening
        means = self.means @ self.whitening
        nearest = np.full(len(vectors), np.inf)
        for mean in means:
            nearest = np.minimum(nearest, np.square(whitened - mean, dtype=np.float64).sum(axis=1))
        return np.sqrt(nearest)

    def limit(self, share: float, flag: str) -> float:
        """Return a distance that at least this share of later rows do not exceed.

        This holds for rows like the evaluation rows. Of n evaluation rows it is the k-th smallest
        distance, k = ceil((n + 1) share), as in split conformal prediction (Vovk et al. 2005).

        Args:
            share: above 0 and below 1.
            flag: name of the option, for the message.

        Raises:
            UsageError: the evaluation rows are too few.
        """
        number = len(self.evaluation)
        place = math.ceil((number + 1) * share - _ROUNDING)
        if place > number:
            needed = math.ceil(share / (1 - share) - _ROUNDING)
            raise UsageError(
                f"{flag} {share:g}: {number:,} evaluation rows are too few to say how far so rare "
                f"a row is; at least {needed:,} would do (at most {MOST_EVALUATION_ROWS:,} are "
                "kept); ask for less, or give finetune more of them"
            )
        return float(self.evaluation[place - 1])

    def as_json(self) -> dict[str, Any]:
        """Return the entry `distance`."""
        return {
            "dimensions": self.means.shape[1],
            "means": _encoded(self.means),
            "whitening": _encoded(self.whitening),
            "evaluation": self.evaluation.tolist(),
        }

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Self:
        """Read `as_json`; KeyError, TypeError or ValueError if it is something else."""
        dimensions = int(entry["dimensions"])
        return cls(
            means=_decoded(entry["means"]).reshape(-1, dimensions),
            whitening=_decoded(entry["whitening"]).reshape(dimensions, dimensions),
            evaluation=np.array(entry["evaluation"], np.float64),
        )


def shrunk_covariance(centered: np.ndarray) -> np.ndarray:
    """Return the covariance of rows with the best shrinkage of Ledoit & Wolf (2004, lemma 3.3).

    Args:
        centered: float64 [rows, dimensions], with mean 0.

    Returns:
        float64 [dimensions, dimensions].
    """
    rows, dimensions = centered.shape
    covariance = centered.T @ centered / rows
    scale = np.trace(covariance) / dimensions
    spread = np.square(covariance).sum()
    # The variation of the covariance of single rows, and its distance from the identity's multiple.
    squares = np.square(centered)
    variation = ((squares.T @ squares).sum() / rows - spread) / rows
    distance = spread - dimensions * scale**2
    share = min(variation, distance) / distance if distance > 0 else 1.0
    return (1 - share) * covariance + share * scale * np.eye(dimensions)


def _as_kept(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float16).astype(np.float32)


def _encoded(values: np.ndarray) -> str:
    return base64.b64encode(values.astype("<f2").tobytes()).decode()


def _decoded(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), "<f2").astype(np.float32)
