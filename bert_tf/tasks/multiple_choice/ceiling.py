"""Ceiling of multiple choice: a model reads some choices alike.

See `bert_tf.tasks.running.ceiling`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, cast

import numpy as np

from bert_tf.data.rows.encoded_rows import GroupedRows
from bert_tf.serving.signatures import FAR_BELOW
from bert_tf.tasks.base.ceiling import CERTAIN, Cause, lost_tokens, sequence_keys

if TYPE_CHECKING:
    from bert_tf.tasks.base.task_data import TaskData
    from bert_tf.tasks.multiple_choice.rows import ChoiceRows


def with_right_texts(data: TaskData) -> TaskData:
    """Return data whose target is the key of the right choice's tokens, uint64 [rows].

    Each choice is scored by itself, whatever its place, so rows may have the same choices in
    another order.
    """
    rows = cast(GroupedRows, data.rows)
    right = rows.group_offsets[:-1] + data.source.right
    return dataclasses.replace(data, targets={"right": sequence_keys(rows)[right]})


def gold_choice_logits(data: TaskData) -> Callable[[np.ndarray], dict[str, np.ndarray]]:
    """Return a function from rows to logits that are sure of the targets.

    Args:
        data: rows with the targets of `with_right_texts`.

    Returns:
        A function from int [n] to `logits`, float32 [n, choices], `FAR_BELOW` where a row has no
        choice.
    """
    rows = cast(GroupedRows, data.rows)
    right = data.targets["right"]
    keys = sequence_keys(rows)
    offsets = rows.group_offsets

    def outputs(chosen: np.ndarray) -> dict[str, np.ndarray]:
        places = offsets[chosen, None] + np.arange(rows.sequences_per_row)
        is_right = keys[np.minimum(places, len(keys) - 1)] == right[chosen, None]
        logits = np.where(is_right, CERTAIN, 0.0)
        logits[places >= offsets[chosen + 1, None]] = FAR_BELOW
        return {"logits": logits.astype(np.float32)}

    return outputs


def choice_causes(data: TaskData, missed: np.ndarray, flag: str) -> Iterator[Cause]:
    """Yield the causes why the model reads another choice of missed rows like the right one.

    Choices with the same tokens have the same score, and the first of them wins.

    Args:
        data: the rows.
        missed: bool [rows], True for those that a perfect model predicts wrong.
        flag: the option that cuts choices, with its value.
    """
    rows = cast(GroupedRows, data.rows)
    source = cast("ChoiceRows", data.source)
    keys = sequence_keys(rows)
    of_right = np.repeat(keys[rows.group_offsets[:-1] + source.right], rows.group_sizes)
    alike = np.add.reduceat(keys == of_right, rows.group_offsets[:-1], dtype=np.int64) > 1
    pairs = zip(source.choices, source.right.tolist(), strict=True)
    repeats = np.array([texts.count(texts[number]) > 1 for texts, number in pairs], bool)
    is_cut = lost_tokens(data) > 0
    yield Cause.of_rows(
        missed & alike & repeats,
        "has the text of the right choice twice",
        "leave out one of them",
    )
    yield Cause.of_rows(
        missed & alike & ~repeats & is_cut,
        f"has choices that read alike, once cut by {flag}",
        f"raise {flag.partition(' ')[0]}",
        is_setting=True,
    )
    yield Cause.of_rows(
        missed & alike & ~repeats & ~is_cut,
        "has choices that differ only in details that the tokenizer drops (case, accents, unknown "
        "words)",
        "start from a cased model, or one for the language of the texts",
    )
