"""Answers from logits, in NumPy: for evaluation and for engines without TensorFlow."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from bert_tf.data.text.host_wordpiece import HostTokenizer
from bert_tf.tasks.base.declaration import ServedTaskDeclaration
from bert_tf.tasks.base.host_task import HostRows, HostTask
from bert_tf.tasks.question_answering.answers.answer_choice import Answers, choose_answers
from bert_tf.tasks.question_answering.answers.answer_rules import AnswerRules
from bert_tf.tasks.question_answering.answers.answer_spans import (
    null_scores,
    question_spans,
    window_spans,
)
from bert_tf.tasks.question_answering.options import QUESTION_ANSWERING
from bert_tf.tasks.question_answering.rows.question_rows import QuestionRows, encode_questions


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuestionAnsweringHost(HostTask):
    """See `QuestionAnsweringTask` for the fields."""

    declaration: ClassVar[ServedTaskDeclaration] = QUESTION_ANSWERING

    doc_stride: int
    max_query_length: int
    max_answer_length: int
    n_best_size: int
    may_be_unanswerable: bool
    null_score_diff_threshold: float
    sentence_margin: float = 0.0

    @property
    def rules(self) -> AnswerRules:
        """How answers are chosen."""
        return AnswerRules(
            may_be_unanswerable=self.may_be_unanswerable,
            null_threshold=self.null_score_diff_threshold,
            sentence_margin=self.sentence_margin,
        )

    def encode(self, tokenizer: HostTokenizer, columns: Mapping[str, Sequence[Any]]) -> HostRows:
        """See `HostTask.encode`; a context of several questions is tokenized once."""
        numbers: dict[str, int] = {}
        index = [numbers.setdefault(text, len(numbers)) for text in columns["context"]]
        questions = encode_questions(
            tokenizer,
            columns["question"],
            list(numbers),
            np.array(index, np.int64),
            max_seq_length=self.max_seq_length,
            doc_stride=self.doc_stride,
            max_query_length=self.max_query_length,
        )
        return HostRows(sequences=questions.rows, details=questions)

    def reduce(
        self, rows: HostRows, chosen: np.ndarray, outputs: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """See `span_scores`."""
        return span_scores(
            rows.details,
            chosen,
            outputs,
            max_answer_length=self.max_answer_length,
            n_best=self.n_best_size,
        )

    def predict(
        self,
        rows: HostRows,
        columns: Mapping[str, Sequence[Any]],
        reduced: dict[str, np.ndarray],
    ) -> dict[str, Any]:
        """See `answer_columns`."""
        contexts = list(dict.fromkeys(columns["context"]))  # in the order of `encode`
        answers = scored_answers(
            rows.details, contexts, reduced, n_best=self.n_best_size, rules=self.rules
        )
        return answer_columns(answers)


def span_scores(
    encoded: QuestionRows,
    chosen: np.ndarray,
    outputs: Mapping[str, np.ndarray],
    *,
    max_answer_length: int,
    n_best: int,
) -> dict[str, np.ndarray]:
    """The best spans of some windows, and the score of [CLS].

    Args:
        encoded: all windows.
        chosen: int [n], the windows that were computed.
        outputs: `start_logits` and `end_logits`, float32 [n, length].
        max_answer_length: tokens of the longest span.
        n_best: spans kept per window.

    Returns:
        `first`, `last` and `score` of `window_spans`, [n, n_best], and `cls`, float32 [n].
    """
    start, end = outputs["start_logits"], outputs["end_logits"]
    first, last, score = window_spans(
        start,
        end,
        encoded.context_begins[chosen],
        encoded.windows.length[chosen],
        max_answer_length=max_answer_length,
        n_best=n_best,
    )
    return {"first": first, "last": last, "score": score, "cls": start[:, 0] + end[:, 0]}


def scored_answers(
    encoded: QuestionRows,
    contexts: Sequence[str],
    reduced: Mapping[str, np.ndarray],
    *,
    n_best: int,
    rules: AnswerRules,
) -> Answers:
    """The answer to each question, from what `span_scores` gave of all windows.

    Args:
        encoded: the questions.
        contexts: their contexts, each once.
        reduced: [windows, …].
        n_best: spans that compete for an answer.
        rules: what decides between them.
    """
    candidates = question_spans(
        encoded.windows, reduced["first"], reduced["last"], reduced["score"], n_best=n_best
    )
    return choose_answers(
        candidates,
        null_scores(encoded.windows, reduced["cls"], len(encoded.context_index)),
        contexts,
        encoded.contexts,
        encoded.context_index,
        rules,
    )


def answer_columns(answers: Answers) -> dict[str, Any]:
    """The answer to each question, its place in the context, its probability and its rivals."""
    return {
        "predicted_answer": answers.texts,
        "predicted_start": answers.starts.astype(np.int32),
        "predicted_end": answers.ends.astype(np.int32),
        "predicted_score": answers.scores,
        "predicted_null_odds": answers.null_odds,
        "predicted_nbest": answers.nbest,
    }
