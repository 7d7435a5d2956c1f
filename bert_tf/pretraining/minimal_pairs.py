"""Minimal pairs: how often a model finds a good sentence likelier than a bad one.

The sentences of a pair differ in one thing, such as the agreement of a verb. The model is right
about it if the pseudo-log-likelihood of the good sentence is the higher one (Warstadt et al. 2020,
"BLiMP", section 4; Salazar et al. 2020, section 4.2); equal ones count as half. No head is trained,
so that the measure shows the effect of pretraining only.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.base.arrays import offsets_of
from bert_tf.base.errors import InputError
from bert_tf.data.rows.encoded_rows import Batching
from bert_tf.data.rows.masked_copies import MaskedCopies, likelihoods_of
from bert_tf.data.tables.text_files import has_surrogates, open_text
from bert_tf.data.text.host_wordpiece import HostTokenizer, Tokens
from bert_tf.data.text.vocab_file import SPECIALS_OF_TEXT

GOOD = "sentence_good"
BAD = "sentence_bad"
_SHAPE = f'{{"{GOOD}": "…", "{BAD}": "…"}}'  # a line of a file of pairs
# Tokens of a batch, padding included: copies are short, and so few a batch would leave cores idle.
_BATCH_TOKENS = 8192


@dataclasses.dataclass(frozen=True, kw_only=True)
class MinimalPairs:
    """Pairs of sentences of a file.

    Attributes:
        source: name of the file, for messages.
        good, bad: the sentences of each pair.
        lines: line of each pair in the file, from 1.
    """

    source: str
    good: Sequence[str]
    bad: Sequence[str]
    lines: Sequence[int]

    def __len__(self) -> int:
        return len(self.lines)


def read_minimal_pairs(path: str | Path) -> MinimalPairs:
    """Read pairs from JSON lines with the keys `sentence_good` and `sentence_bad`.

    Other keys are ignored, as are empty lines. These are the names of BLiMP's files.

    Raises:
        UsageError: there is no such file.
        InputError: a line is not such an object, or a sentence is empty; the first one is named.
    """
    good: list[str] = []
    bad: list[str] = []
    lines: list[int] = []
    with open_text(path, newline="") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            pair = _read_pair(line, f"{path}:{number}")
            good.append(pair[GOOD])
            bad.append(pair[BAD])
            lines.append(number)
    if not lines:
        raise InputError(f"{path}: has no pairs; every line is {_SHAPE}")
    return MinimalPairs(source=str(path), good=good, bad=bad, lines=lines)


def _read_pair(line: str, place: str) -> dict[str, str]:
    try:
        pair = json.loads(line)
    except (ValueError, RecursionError):
        raise InputError(f"{place}: is not JSON; every line is {_SHAPE}") from None
    if not isinstance(pair, dict):
        raise InputError(f"{place}: is not an object; every line is {_SHAPE}")
    for key in (GOOD, BAD):
        if key not in pair:
            raise InputError(f"{place}: has no key {key!r}; every line is {_SHAPE}")
        text = pair[key]
        if not isinstance(text, str) or not text.strip() or has_surrogates(text):
            raise InputError(f"{place}: {key} is not a text, or is empty; every line is {_SHAPE}")
    return pair


class PairJudge:
    """Measures a model on minimal pairs, with its weights of the moment.

    Args:
        pairs: the pairs.
        model: built `BertMaskedLM` or `BertPretrainingModel`.
        tokenizer: its tokenizer.

    Raises:
        InputError: a sentence is too long, or has no token; the first one is named.
    """

    def __init__(self, pairs: MinimalPairs, *, model: Any, tokenizer: HostTokenizer):
        self._pairs = pairs
        self._score = _scorer(model)
        max_seq_length = model.config.max_position_embeddings
        tokens, numbers = _distinct(tokenizer.tokenize_texts([*pairs.good, *pairs.bad]))
        self._numbers = numbers
        self._copies = MaskedCopies.of(tokens, max_seq_length=max_seq_length, tokenizer=tokenizer)
        self._batching = Batching(
            pad_id=tokenizer.pad_id,
            batch_tokens=_BATCH_TOKENS,
            max_seq_length=max_seq_length,
        )
        is_unusable = (self._copies.counts == 0)[numbers]
        if is_unusable.any():
            place = int(np.argmax(is_unusable)) % len(pairs)
            excess = int(self._copies.excess[numbers][np.argmax(is_unusable)])
            fault = "has no token"
            if excess:
                capacity = max_seq_length - SPECIALS_OF_TEXT
                fault = f"has {excess} tokens more than the {capacity} of the model"
            raise InputError(
                f"{pairs.source}:{pairs.lines[place]}: a sentence {fault}; leave the pair out"
            )

    def __len__(self) -> int:
        return len(self._pairs)

    def differences(self) -> np.ndarray:
        """Return by how much the good sentences are likelier, in nats: float64 [pairs]."""
        copies = self._copies
        lengths = copies.lengths
        scores = np.zeros(len(copies), np.float64)
        for chosen in self._batching.batches(lengths):
            batch = copies.padded(chosen, **self._batching.padding(lengths[chosen]))
            scores[chosen] = self._score(
                tf.constant(batch["input_word_ids"]),
                tf.constant(batch["input_mask"]),
                tf.constant(copies.positions[chosen, None].astype(np.int32)),
                tf.constant(copies.targets[chosen]),
            ).numpy()
        totals = likelihoods_of(copies, scores).totals[self._numbers]
        return totals[: len(self._pairs)] - totals[len(self._pairs) :]

    def accuracy(self) -> float:
        """Return the fraction of pairs whose good sentence is likelier; ties count as half."""
        return float(right_fractions(self.differences()).mean())


def _distinct(tokens: Tokens) -> tuple[Tokens, np.ndarray]:
    """Return each different text once, so that equal ones are exactly as likely.

    Returns:
        The texts, and the number among them of each given text, int64 [texts].
    """
    bounds = itertools.pairwise(tokens.offsets.tolist())
    texts = [tokens.ids[begin:end] for begin, end in bounds]
    kinds: dict[bytes, int] = {}
    numbers = np.array([kinds.setdefault(text.tobytes(), len(kinds)) for text in texts], np.int64)
    firsts = np.unique(numbers, return_index=True)[1]
    distinct = [texts[first] for first in firsts.tolist()]
    offsets = offsets_of(np.array([len(text) for text in distinct], np.int64))
    return Tokens(np.concatenate(distinct), offsets), numbers


def right_fractions(differences: np.ndarray) -> np.ndarray:
    """Return 1 for differences above 0, 0.5 for 0, and 0 for others: float64 [pairs]."""
    return (np.sign(differences) + 1) / 2


def accuracy_error(accuracy: float, pairs: int) -> float:
    """Return the standard error of an accuracy on so many independent pairs."""
    return math.sqrt(max(accuracy * (1 - accuracy), 0.0) / pairs)


def _scorer(model: Any) -> Any:
    """Return a graph from padded copies to log-probabilities of the masked tokens, float32 [n]."""
    rows = tf.TensorSpec([None, None], tf.int32)

    @tf.function(
        autograph=False, input_signature=[rows, rows, rows, tf.TensorSpec([None], tf.int32)]
    )
    def score(
        ids: tf.Tensor, mask: tf.Tensor, positions: tf.Tensor, targets: tf.Tensor
    ) -> tf.Tensor:
        outputs = model(
            {
                "input_word_ids": ids,
                "input_mask": mask,
                "input_type_ids": tf.zeros_like(ids),
                "masked_lm_positions": positions,
            },
            training=False,
        )
        logits = outputs["mlm_logits"] if isinstance(outputs, dict) else outputs
        logits = tf.cast(logits[:, 0], tf.float32)
        target_logits = tf.gather(logits, targets, batch_dims=1)
        return target_logits - tf.reduce_logsumexp(logits, axis=-1)

    return score
