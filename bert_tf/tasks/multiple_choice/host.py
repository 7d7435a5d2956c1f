"""The right choice from logits, in NumPy: for evaluation and for engines without TensorFlow."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from bert_tf.base.arrays import flat_ranges, offsets_of
from bert_tf.data.rows.host_rows import SPECIALS_OF_PAIR, TokenRanges, longest_first, pair_rows
from bert_tf.data.text.host_wordpiece import Tokenizer, Tokens
from bert_tf.serving.signatures import FAR_BELOW
from bert_tf.tasks.base.declaration import ServedTaskDeclaration
from bert_tf.tasks.base.explained import Outputs, PlacedRow, Target
from bert_tf.tasks.base.host_task import HostRows, HostTask
from bert_tf.tasks.multiple_choice.options import MULTIPLE_CHOICE


@dataclasses.dataclass(frozen=True, kw_only=True)
class MultipleChoiceHost(HostTask):
    """The task around its graph: scores a context with each choice; an empty text is none."""

    declaration: ClassVar[ServedTaskDeclaration] = MULTIPLE_CHOICE
    list_inputs: ClassVar[tuple[str, ...]] = ("choices",)

    def targets(
        self, placed: PlacedRow, outputs: Outputs, predicted: Mapping[str, Any]
    ) -> list[Target]:
        weights = np.zeros_like(outputs["logits"], np.float32)
        _, choices = np.asarray(placed.rows.details).T  # a sequence for each
        weights[choices == int(predicted["predicted_choice"])] = 1.0
        return [Target(name=str(predicted["predicted_text"]), weights={"logits": weights})]

    def encode(self, tokenizer: Tokenizer, columns: Mapping[str, Sequence[Any]]) -> HostRows:
        """Make a sequence for each choice: the context, then the question, a blank and the choice.

        As HuggingFace's run_swag.py. The details are the row and number of each choice, int64
        [choices, 2]. Contexts and questions are tokenized once, and no choice has a copy of all
        their tokens.
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
        owners = places[:, 0]
        context = tokenizer.tokenize_texts(columns["context"])
        second = tokenizer.tokenize_texts([choices[row][place] for row, place in places.tolist()])
        # Lengths of the two segments of each choice, before they are cut.
        lengths = np.stack([np.diff(context.offsets)[owners], np.diff(second.offsets)], axis=1)
        if "question" in columns:
            questions = tokenizer.tokenize_texts(columns["question"])
            lengths[:, 1] += np.diff(questions.offsets)[owners]
            second = _after_questions(questions, owners, second, most=self.max_seq_length)
        # Like BERT's pairs: one token at a time is cut off the longer one.
        kept = longest_first(lengths, capacity=self.max_seq_length - SPECIALS_OF_PAIR)
        sequences = pair_rows(
            TokenRanges(context.ids, context.offsets[:-1][owners], kept[:, 0]),
            TokenRanges(second.ids, second.offsets[:-1], kept[:, 1]),
            cls_id=tokenizer.cls_id,
            sep_id=tokenizer.sep_id,
        )
        lost_tokens = (lengths - kept).sum(axis=1)
        sequences = dataclasses.replace(sequences, lost_tokens=lost_tokens)
        return HostRows(sequences=sequences, details=places)

    def predict(
        self, rows: HostRows, columns: Mapping[str, Sequence[Any]], reduced: dict[str, np.ndarray]
    ) -> dict[str, Any]:
        choices = columns["choices"]
        row, number = rows.details.T
        shape = len(choices), max(map(len, choices), default=1)
        # Rows with fewer choices, or with empty ones, must not choose what is not there.
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


def _after_questions(
    questions: Tokens, owners: np.ndarray, choices: Tokens, *, most: int
) -> Tokens:
    """Put the question of its row before each choice, both cut to `most` tokens.

    Args:
        questions: tokens of the questions, one of each row.
        owners: int64 [choices], the rows.
        choices: tokens of the choices.
        most: tokens, more than a sequence has.

    Returns:
        The tokens of both, as if they were joined by a blank.
    """
    of_questions = np.minimum(np.diff(questions.offsets), most)[owners]
    of_choices = np.minimum(np.diff(choices.offsets), most)
    # Where the two pieces of each choice are in the tokens of questions and choices, laid end to
    # end.
    starts = [questions.offsets[:-1][owners], len(questions.ids) + choices.offsets[:-1]]
    places = flat_ranges(
        np.stack(starts, axis=1).ravel(), np.stack([of_questions, of_choices], axis=1).ravel()
    )
    return Tokens(
        np.concatenate([questions.ids, choices.ids])[places], offsets_of(of_questions + of_choices)
    )


def choice_predictions(logits: np.ndarray, choices: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Return the most likely choice, its text and probability, and all probabilities.

    Args:
        logits: float [rows, choices], `FAR_BELOW` if a row has fewer.
        choices: texts of each row.

    Returns:
        Outputs by name, [rows] or [rows, choices], as an exported model has them.
    """
    wide = logits.astype(np.float64)
    # Computed in float64 and relative to the highest logit, so that no exponential overflows.
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
