"""Vocabulary, model, length, batch and steps for an amount of text, as `init pretrain` proposes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from bert_tf.config.bert import SIZES, BertConfig, sized_config
from bert_tf.data.text.vocab_file import SPECIALS_OF_PAIR

# Devlin et al. (2019, A.2) read their corpus about 40 times; Muennighoff et al. (2023) find hardly
# any gain from more.
EPOCHS = 40
# Hoffmann et al. (2022): tokens to be read per weight.
TOKENS_PER_WEIGHT = 20
VOCAB_SIZES = (30_000, 16_000, 8_000, 4_000)
# Gowda and May (2020): fraction of the entries, and number of times that each of these should occur
# for its embedding to be learned.
_FREQUENT_FRACTION = 0.95
_FREQUENT = 100
# Learning rates and batch sizes up to a width. 128: configs/train/tiny.yaml; up to 512:
# ELECTRA-Small (Clark et al. 2020), less for larger batches; from 768: Devlin et al. (2019).
_RATES = ((128, 1e-3), (256, 5e-4), (512, 3e-4), (math.inf, 1e-4))
_BATCHES = ((256, 64), (512, 128), (math.inf, 256))
_LEAST_BATCH = 16
_ENOUGH_STEPS = 10_000  # little text gets smaller batches, so that it makes so many steps
MOST_STEPS = 1_000_000  # of BERT
LENGTH = 128  # tokens, as in the first 90% of BERT's steps
_LEAST_LENGTH = 32
_LENGTH_MULTIPLE = 16
_COVERED = 0.99  # of the documents, at least, fit in a sequence
_MASKED = 0.15  # of the tokens
_EVALUATIONS = 20  # of a run


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainingRecipe:
    """Keys of the sections `preprocess` and `train`, in the units of the config."""

    size: str
    max_seq_length: int
    max_predictions_per_seq: int
    batch_size: int
    learning_rate: float
    steps: int
    eval_every: int

    def passes_over(self, tokens: float) -> float:
        """Return the number of times that a run reads its text (Devlin et al. 2019, A.2).

        It assumes that all positions of a sequence are filled.
        """
        return self.steps * self.batch_size * self.max_seq_length / max(tokens, 1)


def choose_vocab_size(frequencies_by_size: Sequence[tuple[int, np.ndarray]]) -> int:
    """Return the largest vocabulary most of whose entries occur often enough to be learned.

    The rule is that of Gowda and May (2020), "Finding the optimal vocabulary size for neural
    machine translation": 95% of the entries should occur at least 100 times.

    Args:
        frequencies_by_size: sizes, largest first, each with the counts of its entries of several
            characters, float or int [entries].

    Returns:
        A size; the last one if none has enough.
    """
    for size, frequencies in frequencies_by_size:
        if len(frequencies) and np.mean(frequencies >= _FREQUENT) >= _FREQUENT_FRACTION:
            return size
    return frequencies_by_size[-1][0]


def choose_size(tokens: float, vocab_size: int) -> str:
    """Return the largest model for which 40 passes over the text give 20 tokens per weight.

    Args:
        tokens: of the corpus.
        vocab_size: of the model, for the weights of its embeddings.

    Returns:
        The name of a size; the smallest if there is too little text for any.
    """
    fitting = [
        size
        for size in SIZES
        if TOKENS_PER_WEIGHT * sized_config(size, vocab_size).encoder_parameters <= EPOCHS * tokens
    ]
    return fitting[-1] if fitting else next(iter(SIZES))


def choose_length(document_tokens: np.ndarray) -> int:
    """Return 128 tokens, like BERT, or fewer if 99% of the documents fit in them.

    Args:
        document_tokens: int or float [documents].

    Returns:
        A multiple of 16 between 32 and 128.
    """
    needed = float(np.quantile(document_tokens, _COVERED)) + SPECIALS_OF_PAIR
    rounded = math.ceil(needed / _LENGTH_MULTIPLE) * _LENGTH_MULTIPLE
    return min(max(rounded, _LEAST_LENGTH), LENGTH)


def largest_batch(size: str) -> int:
    """Return the number of sequences in a batch for a model with enough text."""
    width = SIZES[size]["hidden_size"]
    return next(batch for widest, batch in _BATCHES if width <= widest)


def choose_recipe(
    size: str,
    *,
    tokens: float,
    max_seq_length: int,
    batch_size: int | None = None,
    steps: int | None = None,
) -> PretrainingRecipe:
    """Choose batch size, learning rate and steps, unless given.

    Little text makes few steps; the batch is halved until there are 10,000 of them.

    Args:
        size: of the model.
        tokens: of the corpus.
        max_seq_length: of the records.
        batch_size: of the user.
        steps: of the user.

    Returns:
        The keys of `preprocess` and `train`.
    """
    width = SIZES[size]["hidden_size"]
    sequences = EPOCHS * tokens / max_seq_length
    batch = batch_size or largest_batch(size)
    while batch_size is None and batch > _LEAST_BATCH and sequences / batch < _ENOUGH_STEPS:
        batch //= 2
    steps = steps or min(_rounded(sequences / batch), MOST_STEPS)
    return PretrainingRecipe(
        size=size,
        max_seq_length=max_seq_length,
        max_predictions_per_seq=math.ceil(_MASKED * max_seq_length),
        batch_size=batch,
        learning_rate=next(rate for widest, rate in _RATES if width <= widest),
        steps=steps,
        eval_every=_rounded(steps / _EVALUATIONS),
    )


def shape_line(model: BertConfig) -> str:
    """Describe a model by its layers, width and weights."""
    millions = model.encoder_parameters / 1e6
    return f"{model.num_hidden_layers} layers, {model.hidden_size} wide, {millions:.1f}M weights"


def _rounded(number: float) -> int:
    """Round to two significant digits, at least 1."""
    digits = max(len(str(int(number))) - 2, 0)
    return max(int(round(number, -digits)), 1)
