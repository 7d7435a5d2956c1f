"""The most likely choice from logits, in NumPy, for evaluation and engines without TensorFlow."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from bert_tf.base.arrays import flat_ranges, offsets_of
from bert_tf.data.rows.host_rows import TokenRanges, longest_first, pair_rows
from bert_tf.data.text.host_wordpiece import Tokenizer, Tokens
from bert_tf.data.text.vocab_file import SPECIALS_OF_PAIR
from bert_tf.serving.signatures import FAR_BELOW
from bert_tf.tasks.base.declaration import ServedTaskDeclaration
from bert_tf.tasks.base.explained import Outputs, PlacedRow, Target
from bert_tf.tasks.base.host_task import HostRows, HostTask
from bert_tf.tasks.multiple_choice.options import MULTIPLE_CHOICE


@dataclasses.dataclass(frozen=True, kw_only=True)
class MultipleChoiceHost(HostTask):
    """The task around its graph: scores a context with each choice; empty texts are no choices."""

    declaration: ClassVar[ServedTaskDeclaration] = MULTIPLE_CHOICE
    list_inputs: ClassVar[tuple[str, ...]] = ("choices",)

    def targets(
        self, placed: PlacedRow, outputs: Outputs, predicted: Mapping[str, Any]
    ) -> list[Target]:
        weights = np.zeros_like(outputs["logits"], np.float32)
        _, choices = np.asarray(placed.rows.details).T  # the number of each sequence's choice
        weights[choices == int(predicted["predicted_choice"])] = 1.0
        return [Target(name=str(predicted["predicted_text"]), weights={"logits": weights})]

    def encode(self, tokenizer: Tokenizer, columns: Mapping[str, Sequence[Any]]) -> HostRows:
        """Make a sequence for each choice: the context, then the question, a blank and the choice.

        HuggingFace's run_swag.py does the same. The details are the row and number of each choice,
        int64 [choices, 2]. Contexts and questions are tokenized once, and their tokens are copied
        only as far as they fit into a sequence.
        """
        choices = columns["choices"]
        listed = []
        for row, texts in enumerate(choices):
            listed += [(row, place) for place, text in enumerate(texts) if text]
        places = np.array(listed, np.int64).reshape(-1, 2)
        owners = places[:, 0]
        context = tokenizer.tokenize_texts(columns["context"])
        second = tokenizer.tokenize_texts([choices[row][place] for row, place in places.tolist()])
        # Lengths of the two segments of each choice, before they are cut.
        lengths = np.stack([np.diff(context.offsets)[owners], np.diff(second.offsets)], axis=1)
        if "question" in columns:
            questions = tokenizer.tokenize_texts(columns["question"])
            lengths[:, 1] += np.diff(questions.offsets)[owners]
            second = _after_questions(questions, owners, second, most=self.max_seq_length)
        # Like BERT's pairs: the longer segment loses one token at a time.
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
        # Rows with fewer choices, or with empty ones, must not choose a missing one.
        logits = np.full(shape, FAR_BELOW, np.float32)
        logits[row, number] = reduced["logits"]
        is_there = np.zeros(shape, bool)
        is_there[row, number] = True
        predicted = choice_predictions(logits, choices)
        has_choices = is_there.any(axis=1)
        chosen = np.where(has_choices, predicted["predicted_choice"], -1)
        return {
            "predicted_choice": chosen.astype(np.int32),
            "predicted_text": predicted["predicted_text"],
            "predicted_score": np.where(has_choices, predicted["predicted_score"], 0.0),
            "probabilities": np.where(is_there, predicted["probabilities"], 0.0),
        }


def _after_questions(
    questions: Tokens, owners: np.ndarray, choices: Tokens, *, most: int
) -> Tokens:
    """Put the question of its row before each choice, both cut to `most` tokens.

    Args:
        questions: tokens of the question of each row.
        owners: int64 [choices], the row of each choice.
        choices: tokens of the choices.
        most: a number of tokens that is more than fits into a sequence.

    Returns:
        The tokens of both, as if they were joined by a blank.
    """
    of_questions = np.minimum(np.diff(questions.offsets), most)[owners]
    of_choices = np.minimum(np.diff(choices.offsets), most)
    # Two ranges for each choice, in the tokens of all questions followed by those of all choices
    ids = np.concatenate([questions.ids, choices.ids])
    starts = [questions.offsets[:-1][owners], len(questions.ids) + choices.offsets[:-1]]
    lengths = [of_questions, of_choices]
    places = flat_ranges(np.stack(starts, axis=1).ravel(), np.stack(lengths, axis=1).ravel())
    return Tokens(ids[places], offsets_of(of_questions + of_choices))


def choice_predictions(logits: np.ndarray, choices: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Return the most likely choice, its text and probability, and all probabilities.

    Args:
        logits: float [rows, choices], `FAR_BELOW` for choices that a row does not have.
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
