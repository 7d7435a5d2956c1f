"""The probability of next sentences from logits, in NumPy, for engines without TensorFlow."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

from bert_tf.tasks.base.declaration import ServedTaskDeclaration
from bert_tf.tasks.base.host_task import TableHost
from bert_tf.tasks.next_sentence.declaration import NEXT_SENTENCE


@dataclasses.dataclass(frozen=True, kw_only=True)
class NextSentenceHost(TableHost):
    """See `NextSentenceModule` for the predictions."""

    declaration: ClassVar[ServedTaskDeclaration] = NEXT_SENTENCE

    def predictions(self, logits: np.ndarray) -> dict[str, Any]:
        """Return the probability of label 0, with which pretraining marks a segment that follows.

        Args:
            logits: float [rows, 2].
        """
        wide = logits.astype(np.float64)
        # 1 / (1 + e^x) in a form that does not overflow.
        follows = np.exp(-np.logaddexp(0.0, wide[:, 1] - wide[:, 0]))
        return {"predicted_score": follows.astype(np.float32)}
