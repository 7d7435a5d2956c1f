"""Warnings about the plan and the loss curve of a pretraining run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bert_tf.data.records.dataset_info import PretrainingData

Line = Mapping[str, Any]  # of metrics.jsonl

UNIGRAM_ENTROPY = "unigram_entropy"
# A loss that is less than 2% below the unigram entropy predicts nothing from context that anyone
# would notice.
_NO_BETTER = 0.98
# Differences of losses from which on something is reported, in nats per token.
_ABOVE_FREQUENCIES = 0.15  # a loss that is so far above it has collapsed
_RISE = 0.3  # a held-out loss has risen since the best one, or a training loss is above guessing
_GAP = 0.7  # the held-out loss is above that of training
# Steps after which models usually know frequencies, and usually use context.
_STEPS_TO_FREQUENCIES = 2_000
_FEW_STEPS = 5_000
_PAIR_GUESSED = math.log(2) - 0.005  # about the loss of guessing one of two labels
# BERT's own epochs (Devlin et al. 2019, A.2). Beyond about as many, repetitions gain nothing
# (Muennighoff et al. 2023).
_EPOCHS = 40
_MANY_EPOCHS = 100  # from where on a run is warned
_NEW_MASKS = "preprocess --set preprocess.masking=dynamic"
_CAUSES = (
    "usual causes are a learning rate that is too high (try a half) or a warmup that is too short, "
    "a corpus of a few texts that repeat, or a vocabulary of another language or casing "
    "(inspect the data for [UNK])"
)


def unigram_entropy(batches: Iterable[Mapping[str, Any]]) -> float:
    """Return the entropy of the masked tokens, in nats per token; 0 without targets.

    It is the masked-LM loss of a model that only knows token frequencies: a loss that is not below
    it shows no learning beyond these.

    Args:
        batches: with `masked_lm_ids`, int [n, predictions], and `masked_lm_weights`, float of that
            shape, 0 on padding.
    """
    targets = [np.zeros(0, np.int64)]
    for batch in batches:
        ids = np.asarray(batch["masked_lm_ids"])
        weights = np.asarray(batch["masked_lm_weights"])
        targets.append(ids[weights > 0])
    counts = np.unique(np.concatenate(targets), return_counts=True)[1]
    fractions = counts / max(counts.sum(), 1)
    return float(-(fractions * np.log(fractions)).sum())


def plan_finding(phases: Iterable[tuple[PretrainingData, int, int]]) -> str | None:
    """Return a warning for a run that reads little text more than a hundred times.

    Args:
        phases: data, steps, and sequences per step of each phase. All phases are assumed to use the
            same text.

    Returns:
        A sentence with the number of epochs and the remedy; None for fewer epochs, and if a
        manifest does not say how many records there are.
    """
    epochs = 0.0
    steps = 0
    is_repeated = False  # whether examples have the same masks in every epoch
    for data, phase_steps, batch_size in phases:
        if not data.train_examples:
            return None
        epochs += phase_steps * batch_size / data.train_examples * data.text_passes
        steps += phase_steps
        is_repeated |= not data.is_dynamic
    if epochs <= _MANY_EPOCHS:
        return None
    fewer = max(round(steps * _EPOCHS / epochs), 1)
    masks = f"; new masks in every epoch delay that ({_NEW_MASKS})" if is_repeated else ""
    return (
        f"{steps:,} steps read this text about {epochs:,.0f} times; BERT read its own "
        f"{_EPOCHS} times, and a model that reads a text much more often learns it by heart: "
        f"use more text, fewer steps ({_EPOCHS} epochs are --steps {fewer}), or start from a model "
        f"that knows the language (--init){masks}"
    )


def run_findings(lines: Sequence[Line], *, vocab_size: int, first_step: int = 0) -> list[str]:
    """Return a sentence, with likely cause and remedy, for each anomaly in the metrics of a run.

    Args:
        lines: lines of metrics.jsonl.
        vocab_size: entries of the vocabulary, for the loss of guessing.
        first_step: lines up to this step are skipped; the begin of the last phase.
    """
    lines = [line for line in lines if line["step"] > first_step and "mlm_loss" in line]
    evals = [line for line in lines if line["split"] == "eval"]
    trains = [line for line in lines if line["split"] == "train"]
    if not evals:
        guessed = _about_guessing(trains, vocab_size)
        return [] if guessed is None else [guessed]
    best = min(evals, key=lambda line: line["mlm_loss"])
    sentences = [_about_rise(best, evals[-1], trains), _about_frequencies(best, evals[-1])]
    if sentences == [None, None]:
        sentences.append(_about_gap(evals[-1], trains))
    sentences.append(_about_pairs(evals[-1]))
    return [sentence for sentence in sentences if sentence is not None]


def _about_guessing(trains: Sequence[Line], vocab_size: int) -> str | None:
    if not trains:
        return None
    loss = trains[-1]["mlm_loss"]
    guess = math.log(vocab_size)
    if loss < guess + _RISE:
        return None
    return (
        f"masked-LM loss {loss:.2f} of training is above that of guessing (ln {vocab_size:,} = "
        f"{guess:.2f}): it diverged; {_CAUSES}"
    )


def beats_frequencies(evaluation: Line) -> bool:
    """Return whether an evaluation shows more than token frequencies; True if that is unknown."""
    entropy = evaluation.get(UNIGRAM_ENTROPY)
    return not entropy or evaluation["mlm_loss"] < _NO_BETTER * entropy


def steps_beyond_frequencies(steps: int) -> int:
    """Return how many steps to make where so many did not get below the unigram baseline."""
    return max(_FEW_STEPS, 2 * steps)


def _about_frequencies(best: Line, last: Line) -> str | None:
    if beats_frequencies(best):
        return None
    entropy = best[UNIGRAM_ENTROPY]
    loss = best["mlm_loss"]
    steps = last["step"]
    if steps >= _STEPS_TO_FREQUENCIES and loss > entropy + _ABOVE_FREQUENCIES:
        return (
            f"held-out masked-LM loss {loss:.2f} is still above the unigram baseline "
            f"({entropy:.2f}) after {steps:,} steps: it has probably collapsed and predicts about "
            f"the same for every token; {_CAUSES}"
        )
    cause = _CAUSES
    if steps < _FEW_STEPS:
        cause = (
            f"models leave this level after hundreds to thousands of steps, and {steps:,} were "
            "made; train longer (--steps)"
        )
    return (
        f"held-out masked-LM loss {loss:.2f} is no better than the unigram baseline "
        f"({entropy:.2f}), so nothing is predicted from context yet: {cause}"
    )


def _about_rise(best: Line, last: Line, trains: Sequence[Line]) -> str | None:
    if last["mlm_loss"] < best["mlm_loss"] + _RISE:
        return None
    rise = (
        f"held-out masked-LM loss rose from {best['mlm_loss']:.2f} at step {best['step']:,} to "
        f"{last['mlm_loss']:.2f}"
    )
    before = [line["mlm_loss"] for line in trains if line["step"] <= best["step"]]
    if before and trains[-1]["mlm_loss"] < before[-1]:
        return (
            f"{rise} while that of training fell: the model memorizes its examples; use more text, "
            f"or new masks in every epoch ({_NEW_MASKS})"
        )
    return f"{rise}, and so did that of training: it diverged; lower the learning rate"


def _about_gap(last: Line, trains: Sequence[Line]) -> str | None:
    if not trains or last["mlm_loss"] < trains[-1]["mlm_loss"] + _GAP:
        return None
    return (
        f"masked-LM loss is {trains[-1]['mlm_loss']:.2f} in training and {last['mlm_loss']:.2f} on "
        "held-out records: examples repeat too often; use more text, or new masks in every epoch "
        f"({_NEW_MASKS})"
    )


def _about_pairs(last: Line) -> str | None:
    name = next((name for name in ("nsp_loss", "sop_loss") if name in last), None)
    if name is None or last[name] < _PAIR_GUESSED:
        return None
    return f"{name} {last[name]:.3f} is no better than guessing (ln 2 = 0.693)"
