"""Runs a model over a text and keeps what can be looked at."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from keras import ops

from bert_tf.base.errors import UsageError
from bert_tf.data.text.host_wordpiece import HostTokenizer
from bert_tf.data.text.vocab_file import SPECIAL_TOKENS
from bert_tf.models.attention_maps import attention_maps
from bert_tf.models.encoder import BertEncoder
from bert_tf.models.masked_lm import BertMaskedLM
from bert_tf.weights.model_directory import (
    ModelDirectory,
    load_all_weights,
    load_weights,
    read_model_directory,
)

_MASK = "[MASK]"
_HEAD = "cls.predictions.transform.dense.weight"
_ROWS_AT_ONCE = 32


@dataclasses.dataclass(frozen=True, kw_only=True)
class Guess:
    """What a model predicts in the place of a token.

    Attributes:
        position: of the token in the sequence.
        candidates: the likeliest tokens and their probabilities, the likeliest first.
        probability: of the token at this position; None where that is [MASK].
    """

    position: int
    candidates: Sequence[tuple[str, float]]
    probability: float | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reading:
    """What a model makes of a text.

    Attributes:
        tokens: of the text, with [CLS] and [SEP].
        is_cut: whether the text is longer than the positions that the model has.
        attention: float32 [layers, heads, query, key].
        neighbors: by position, the nearest entries of the vocabulary and their cosine similarity;
            of each of the first tokens once, where it is first.
        guesses: for each [MASK] or, in a text without any, for each of the first tokens masked by
            itself; None of models that have no masked-LM head.
    """

    tokens: Sequence[str]
    is_cut: bool
    attention: np.ndarray
    neighbors: dict[int, Sequence[tuple[str, float]]]
    guesses: Sequence[Guess] | None


class TextReader:
    """A model to read texts with, in float32.

    Args:
        path: run, or model directory.

    Raises:
        UsageError: the run has kept no model, or weights are missing.
        InputError: a file of the model is damaged.
    """

    def __init__(self, path: str | Path):
        self._directory = read_model_directory(path)
        self._tokenizer = HostTokenizer(self._directory.vocab, lowercase=self._directory.lowercase)
        self._masked_lm: BertMaskedLM | None = None
        if _HEAD in self._directory.tensors:
            self._masked_lm = BertMaskedLM(self._directory.config, dtype="float32")
            self._masked_lm.build(None)
            load_all_weights(self._masked_lm, self._directory)
            self._encoder = self._masked_lm.encoder
        else:
            self._encoder = _encoder_of(self._directory)
        table = ops.convert_to_numpy(ops.copy(self._encoder.embeddings.word_embeddings.value))
        self._directions = table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)

    def read(self, text: str, *, most: int, first: int | None = None) -> Reading:
        """Runs the model over a text, in which [MASK] is a token.

        Args:
            text: any text.
            most: neighbors and candidates of a token.
            first: tokens, counted with [CLS], that have neighbors and, in a text without [MASK],
                guesses; None for all.

        Raises:
            UsageError: there are no tokens in it.
        """
        ids = self._ids(text)
        longest = self._directory.config.max_position_embeddings - 2
        if not len(ids):
            raise UsageError(f"--text {text!r}: has no tokens; give a text")
        tokenizer = self._tokenizer
        row = np.array([[tokenizer.cls_id, *ids[:longest], tokenizer.sep_id]], np.int32)
        # Also of those that are cut off: they ask for no guesses at the other tokens.
        has_masks = tokenizer.mask_id in ids
        return Reading(
            tokens=[tokenizer.vocab[each] for each in row[0]],
            is_cut=len(ids) > longest,
            attention=attention_maps(self._encoder, row)[:, 0],
            neighbors=self._neighbors(row[0, :first], most),
            guesses=None
            if self._masked_lm is None
            else self._guesses(row[0], most, has_masks=has_masks, first=first),
        )

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = []
        parts = text.split(_MASK)
        tokens = self._tokenizer.tokenize(parts)
        for place, (begin, end) in enumerate(
            zip(tokens.offsets[:-1], tokens.offsets[1:], strict=True)
        ):
            ids += [self._tokenizer.mask_id] * (place > 0)
            ids += tokens.ids[begin:end].tolist()
        return ids

    def _neighbors(self, ids: np.ndarray, most: int) -> dict[int, Sequence[tuple[str, float]]]:
        kinds, firsts = np.unique(ids, return_index=True)
        specials = [self._tokenizer.vocab.index(token) for token in SPECIAL_TOKENS]
        found: dict[int, Sequence[tuple[str, float]]] = {}
        for position in sorted(firsts[~np.isin(kinds, specials)].tolist()):
            similarity = self._directions @ self._directions[ids[position]]
            similarity[[ids[position], *specials]] = -np.inf
            best = _highest(similarity, most)
            found[position] = [(self._tokenizer.vocab[e], float(similarity[e])) for e in best]
        return found

    def _guesses(
        self, ids: np.ndarray, most: int, *, has_masks: bool, first: int | None
    ) -> list[Guess]:
        mask_id = self._tokenizer.mask_id
        positions = (
            np.flatnonzero(ids == mask_id) if has_masks else np.arange(len(ids) - 1)[1:first]
        )
        guesses = []
        for begin in range(0, len(positions), _ROWS_AT_ONCE):
            chosen = positions[begin : begin + _ROWS_AT_ONCE]
            rows = np.tile(ids, (len(chosen), 1))
            rows[np.arange(len(chosen)), chosen] = mask_id
            for position, probabilities in zip(
                chosen.tolist(), self._probabilities(rows, chosen), strict=True
            ):
                best = _highest(probabilities, most)
                guesses.append(
                    Guess(
                        position=position,
                        candidates=[
                            (self._tokenizer.vocab[each], float(probabilities[each]))
                            for each in best
                        ],
                        probability=None if has_masks else float(probabilities[ids[position]]),
                    )
                )
        return guesses

    def _probabilities(self, rows: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """float32 [rows, vocab]: what stands at a position of each row."""
        inputs: dict[str, Any] = {
            "input_word_ids": rows,
            "input_mask": np.ones_like(rows),
            "input_type_ids": np.zeros_like(rows),
            "masked_lm_positions": positions[:, None].astype(np.int32),
        }
        assert self._masked_lm is not None
        return np.asarray(ops.convert_to_numpy(ops.softmax(self._masked_lm(inputs)))[:, 0])


def _encoder_of(directory: ModelDirectory) -> BertEncoder:
    encoder = BertEncoder(directory.config, has_pooler=False, dtype="float32")
    encoder.build_weights()
    load_weights(encoder, directory)
    return encoder


def _highest(values: np.ndarray, most: int) -> np.ndarray:
    """The places of the highest values, the highest first, the first among equals."""
    return np.argsort(-values, kind="stable")[:most]
