"""The likelihood of texts from logits, in NumPy, for engines without TensorFlow."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from bert_tf.base.errors import Fault
from bert_tf.data.rows.masked_copies import (
    MaskedCopies,
    likelihoods_of,
    target_log_probabilities,
)
from bert_tf.data.text.host_wordpiece import Tokenizer
from bert_tf.serving.signatures import EXCESS_TOKENS
from bert_tf.tasks.base.declaration import ServedTaskDeclaration
from bert_tf.tasks.base.host_task import HostRows, HostTask
from bert_tf.tasks.likelihood.declaration import (
    DIFFERENCE,
    LIKELIHOOD,
    LOG_LIKELIHOOD,
    PERPLEXITY,
    PREFIXES,
    TOKEN_COUNT,
    likelihood_faults,
)

_POSITIONS = "masked_lm_positions"  # input of the graph, see `onnx_model`
_SCORES = "log_probabilities"


@dataclasses.dataclass(frozen=True, kw_only=True)
class LikelihoodHost(HostTask):
    """See `LikelihoodModule` for the predictions."""

    declaration: ClassVar[ServedTaskDeclaration] = LIKELIHOOD

    def encode(self, tokenizer: Tokenizer, columns: Mapping[str, Sequence[Any]]) -> HostRows:
        """Make a sequence for each token, first of all first texts, then of the second ones."""
        texts = [text for name in self.input_names for text in columns[name]]
        copies = MaskedCopies.of(
            tokenizer.tokenize_texts(texts),
            max_seq_length=self.max_seq_length,
            tokenizer=tokenizer,
        )
        return HostRows(sequences=copies, inputs={_POSITIONS: copies.positions[:, None]})

    def text_faults(self, rows: HostRows) -> dict[int, Fault]:
        return likelihood_faults(self._counts(rows))

    def _counts(self, rows: HostRows) -> dict[str, np.ndarray]:
        """Count the tokens of texts, and those beyond the model's limit, int32 [rows] by output."""
        copies = _copies(rows)
        shape = (len(self.input_names), -1)
        counts = copies.counts.reshape(shape).astype(np.int32)
        outputs = {
            f"{PREFIXES[name]}_{TOKEN_COUNT}": counts[number]
            for number, name in enumerate(self.input_names)
        }
        excess = copies.excess.reshape(shape).sum(axis=0)
        return {**outputs, EXCESS_TOKENS: excess.astype(np.int32)}

    def reduce(
        self, rows: HostRows, chosen: np.ndarray, outputs: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        copies = _copies(rows)
        targets = copies.targets[chosen]
        return {_SCORES: target_log_probabilities(outputs["logits"][:, 0], targets)}

    def predict(
        self, rows: HostRows, columns: Mapping[str, Sequence[Any]], reduced: dict[str, np.ndarray]
    ) -> dict[str, Any]:
        copies = _copies(rows)
        likelihoods = likelihoods_of(copies, reduced[_SCORES])
        shape = (len(self.input_names), -1)
        totals = likelihoods.totals.reshape(shape)
        perplexities = likelihoods.perplexities.reshape(shape)
        outputs: dict[str, Any] = {}
        for number, name in enumerate(self.input_names):
            prefix = PREFIXES[name]
            outputs[f"{prefix}_{LOG_LIKELIHOOD}"] = totals[number].astype(np.float32)
            outputs[f"{prefix}_{PERPLEXITY}"] = perplexities[number].astype(np.float32)
        if len(totals) > 1:
            outputs[DIFFERENCE] = (totals[0] - totals[1]).astype(np.float32)
        return {**outputs, **self._counts(rows)}


def _copies(rows: HostRows) -> MaskedCopies:
    assert isinstance(rows.sequences, MaskedCopies)
    return rows.sequences
