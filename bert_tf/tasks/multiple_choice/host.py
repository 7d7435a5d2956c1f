"""The right choice from logits, in NumPy: for evaluation and for engines without TensorFlow."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from bert_tf.data.rows.host_rows import pack_host_pairs, selected_tokens
from bert_tf.data.text.host_wordpiece import Tokenizer
from bert_tf.serving.signatures import FAR_BELOW
from bert_tf.tasks.base.declaration import ServedTaskDeclaration
from bert_tf.tasks.base.host_task import HostRows, HostTask
from bert_tf.tasks.multiple_choice.options import MULTIPLE_CHOICE


@dataclasses.dataclass(frozen=True, kw_only=True)
class MultipleChoiceHost(HostTask):
    """Scores a context with each choice; an empty text is none."""

    declaration: ClassVar[ServedTaskDeclaration] = MULTIPLE_CHOICE
    list_inputs: ClassVar[tuple[str, ...]] = ("choices",)

    def encode(self, tokenizer: Tokenizer, columns: Mapping[str, Sequence[Any]]) -> HostRows:
        """A sequence for each choice: the context, then the question, a blank and the choice.

        As HuggingFace's run_swag.py. The details are the row and number of each choice, int64.
        """
        choices = columns["choices"]
        places = np.array(
            [
                (row, place)
                for row, texts in enumerate(choices)
                for place, text in enumerate(texts)
                if text
            ],
            np.int64,
        ).reshape(-1, 2)
        second = [choices[row][number] for row, number in places.tolist()]
        if "question" in columns:
            asked = (columns["question"][row] for row in places[:, 0].tolist())
            second = [f"{question} {text}" for question, text in zip(asked, second, strict=True)]
        sequences = pack_host_pairs(
            selected_tokens(tokenizer.tokenize_texts(columns["context"]), places[:, 0]),
            tokenizer.tokenize_texts(second),
            max_seq_length=self.max_seq_length,
            tokenizer=tokenizer,
        )
        return HostRows(sequences=sequences, details=places)

    def predict(
        self, rows: HostRows, columns: Mapping[str, Sequence[Any]], reduced: dict[str, np.ndarray]
    ) -> dict[str, Any]:
        choices = columns["choices"]
        row, number = rows.details.T
        shape = len(choices), max(map(len, choices), default=1)
        logits = np.full(shape, FAR_BELOW, np.float32)
        logits[row, number] = reduced["logits"]
        is_there = np.zeros(shape, bool)
        is_there[row, number] = True
        predicted = choice_predictions(logits, choices)
        has_choices = is_there.any(axis=1)
        return {
            "predicted_choice": np.where(has_choices, predicted["predicted_choice"], -1).astype(
                np.int32
            ),
            "predicted_text": predicted["predicted_text"],
            "predicted_score": np.where(has_choices, predicted["predicted_score"], 0.0),
            "probabilities": np.where(is_there, predicted["probabilities"], 0.0),
        }


def choice_predictions(logits: np.ndarray, choices: Sequence[Sequence[str]]) -> dict[str, Any]:
    """The most likely choice, its text and probability, and the probabilities of all choices.

    `logits` are float [rows, choices], `FAR_BELOW` if a row has fewer.
    """
    wide = logits.astype(np.float64)
    odds = np.exp(wide - wide.max(axis=1, keepdims=True))
    probabilities = odds / odds.sum(axis=1, keepdims=True)
    chosen = wide.argmax(axis=1)
    return {
        "predicted_choice": chosen,
        "predicted_text": [
            texts[choice] for texts, choice in zip(choices, chosen.tolist(), strict=True)
        ],
        "predicted_score": probabilities.max(axis=1),
        "probabilities": probabilities,
    }
