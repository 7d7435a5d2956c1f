"""Extractive question answering over contexts of any length (SQuAD 1.1 and 2.0)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.config.bert import BertConfig
from bert_tf.config.sections import EvaluateConfig
from bert_tf.config.sections.scoring import given_columns
from bert_tf.data.rows.holdout import RowGroups
from bert_tf.data.tables.dialect import PLAIN, TableDialect
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.models.heads import BertQuestionAnswerer
from bert_tf.tasks.base.declaration import TaskCard, TaskDeclaration
from bert_tf.tasks.base.task import Task, TaskData, TaskResults
from bert_tf.tasks.question_answering.answers.answer_choice import Answers
from bert_tf.tasks.question_answering.answers.answer_rules import AnswerRules
from bert_tf.tasks.question_answering.card import question_answering_card
from bert_tf.tasks.question_answering.head import span_logits, span_loss
from bert_tf.tasks.question_answering.host import answer_columns, scored_answers, span_scores
from bert_tf.tasks.question_answering.options import (
    QUESTION_ANSWERING,
    QuestionAnsweringConfig,
)
from bert_tf.tasks.question_answering.results import (
    can_tune,
    how_tuned,
    question_results,
    tuned_threshold,
)
from bert_tf.tasks.question_answering.rows.question_reader import read_questions
from bert_tf.tasks.question_answering.rows.question_rows import (
    QuestionRows,
    check_question_lengths,
    encode_questions,
)
from bert_tf.tasks.question_answering.rows.question_targets import (
    located_questions,
    question_targets,
)
from bert_tf.tasks.question_answering.rows.questions import QuestionColumns, Questions
from bert_tf.tasks.question_answering.serving import QuestionAnswerer
from bert_tf.training.protocols import Batch, LossParts
from bert_tf.weights.import_weights import architecture
from bert_tf.weights.model_directory import ModelDirectory


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuestionAnsweringTask(Task):
    """A span of the context, or no answer, per question (Devlin et al. 2019, sections 4.2 and 4.3).

    Attributes:
        columns: where a table holds what; SQuAD JSON has its own names.
        max_seq_length, doc_stride, max_query_length: tokens of a row, between two windows, of a
            question.
        max_answer_length, n_best_size: tokens of an answer, spans that compete for it.
        null_score_diff_threshold, sentence_margin: see `AnswerRules`.
        may_be_unanswerable: whether the training data have questions without an answer; only then
            may the model leave a question unanswered.
        tune_null_threshold: whether the threshold is the one that suits the evaluation rows best.
    """

    declaration: ClassVar[TaskDeclaration] = QUESTION_ANSWERING

    columns: QuestionColumns
    max_seq_length: int
    doc_stride: int
    max_query_length: int
    max_answer_length: int
    n_best_size: int
    null_score_diff_threshold: float
    may_be_unanswerable: bool
    tune_null_threshold: bool = False
    sentence_margin: float = 0.0

    @property
    def rules(self) -> AnswerRules:
        """How answers are chosen."""
        return AnswerRules(
            may_be_unanswerable=self.may_be_unanswerable,
            null_threshold=self.null_score_diff_threshold,
            sentence_margin=self.sentence_margin,
        )

    @classmethod
    def from_training(
        cls, config: QuestionAnsweringConfig, console: Console
    ) -> tuple[Self, Questions]:
        """Reads the training questions; looks whether some have no answer."""
        check_question_lengths(config.sequence_length, config.max_query_length)
        columns = QuestionColumns(
            question=config.question_column,
            context=config.context_column,
            answer=config.answer_column,
            answer_start=config.answer_start_column,
        )
        questions = read_questions(
            config.train,
            columns,
            check_offsets=True,
            dialect=TableDialect.of(config),
            max_rows=config.max_train_rows,
            console=console,
        )
        task = cls(
            columns=columns,
            max_seq_length=config.sequence_length,
            doc_stride=config.doc_stride,
            max_query_length=config.max_query_length,
            max_answer_length=config.max_answer_length,
            n_best_size=config.n_best_size,
            null_score_diff_threshold=config.null_score_diff_threshold or 0.0,
            may_be_unanswerable=not all(questions.answers),
            tune_null_threshold=config.null_score_diff_threshold is None,
            sentence_margin=config.sentence_margin,
        )
        return task, questions

    @classmethod
    def from_weights(cls, directory: ModelDirectory) -> Self | None:
        """The task of another library's model, which always answers: weights do not say more."""
        if architecture(directory) != BertQuestionAnswerer.huggingface_class:
            return None
        defaults = QuestionAnsweringConfig
        longest = directory.config.max_position_embeddings
        length = min(defaults.default_sequence_length, longest)
        return cls(
            columns=QuestionColumns(
                question=defaults.question_column,
                context=defaults.context_column,
                answer=defaults.answer_column,
                answer_start=defaults.answer_start_column,
            ),
            max_seq_length=length,
            doc_stride=min(defaults.doc_stride, length // 4),
            max_query_length=min(defaults.max_query_length, length // 4),
            max_answer_length=defaults.max_answer_length,
            n_best_size=defaults.n_best_size,
            null_score_diff_threshold=0.0,
            may_be_unanswerable=False,
            sentence_margin=defaults.sentence_margin,
        )

    def with_columns(self, config: EvaluateConfig) -> Self:
        """The same task, reading other columns where the config names them."""
        given = given_columns(config, ("question", "context", "answer"))
        return dataclasses.replace(self, columns=dataclasses.replace(self.columns, **given))

    def read(self, path: str, console: Console, *, dialect: TableDialect = PLAIN) -> Questions:
        """Reads questions with their gold answers, whose positions do not matter."""
        return read_questions(
            path, self.columns, check_offsets=False, dialect=dialect, console=console
        )

    def describe(self, train: Questions, evaluation: Questions | None) -> Iterator[str]:
        """How many questions have no answer, and what that means for the null threshold."""
        for name, source in (("training", train), ("evaluation", evaluation)):
            if source is not None:
                yield f"  {name}: {source.counted()}"
        if self.may_be_unanswerable and self.tune_null_threshold and evaluation is not None:
            yield f"  null threshold: {how_tuned(evaluation)}"

    def texts(self, source: Questions) -> dict[str, list[str]]:
        """`question` and `context`."""
        return {
            "question": source.questions,
            "context": [source.contexts[index] for index in source.context_index],
        }

    def groups(self, source: Questions) -> RowGroups:
        """Questions on a context stay together."""
        return RowGroups(keys=[source.contexts[index] for index in source.context_index])

    def encode(
        self, source: Questions, tokenizer: WordPieceTokenizer, *, training: bool
    ) -> TaskData:
        """Cuts the contexts into windows; a window without its answer is to point to [CLS].

        In training, questions whose answer holds nothing that the tokenizer keeps are rejected; in
        evaluation they do not count for the loss. Where no answer has a place, no question does.

        Raises:
            InputError: no question is left.
        """
        encoded = encode_questions(
            tokenizer,
            source.questions,
            source.contexts,
            source.context_index,
            max_seq_length=self.max_seq_length,
            doc_stride=self.doc_stride,
            max_query_length=self.max_query_length,
        )
        targets = question_targets(source, encoded)
        if training and not targets.is_located.all():
            located = located_questions(source, targets.is_located)
            return self.encode(located, tokenizer, training=True)
        return TaskData(
            source=source,
            rows=encoded.rows,
            targets={"start_position": targets.starts, "end_position": targets.ends},
            weights=targets.is_located[encoded.windows.question].astype(np.float32),
            owners=encoded.windows.question,
            details=encoded,
        )

    def serving_module(self, model: Any, tokenizer: WordPieceTokenizer) -> QuestionAnswerer:
        """Answers with their places and probabilities."""
        return QuestionAnswerer(self, model, tokenizer)

    def reference_outputs(
        self, model: Any, tokenizer: WordPieceTokenizer, texts: Mapping[str, Sequence[Any]]
    ) -> dict[str, np.ndarray]:
        outputs = super().reference_outputs(model, tokenizer, texts)
        return {"predicted_score": outputs["predicted_score"]}  # odds may be infinite

    def card(self) -> TaskCard:
        """Answers from a context."""
        return question_answering_card(self)

    def build_model(self, config: BertConfig, *, policy: str) -> BertQuestionAnswerer:
        """The encoder with a start and an end score for every token."""
        return BertQuestionAnswerer(config, dtype=policy, name="question_answering")

    def outputs(
        self, model: Any, batch: Batch, *, training: bool, dropout_key: tf.Tensor | None
    ) -> dict[str, tf.Tensor]:
        """`start_logits` and `end_logits`, see `head.span_logits`."""
        return span_logits(model, batch, training=training, dropout_key=dropout_key)

    def loss_parts(self, outputs: dict[str, tf.Tensor], batch: Batch) -> LossParts:
        """Loss and accuracy of the spans, see `head.span_loss`."""
        return span_loss(outputs, batch)

    def reduce(
        self, data: TaskData, chosen: np.ndarray, outputs: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """The best spans of each window and the score of [CLS]."""
        return span_scores(
            data.details,
            chosen,
            outputs,
            max_answer_length=self.max_answer_length,
            n_best=self.n_best_size,
        )

    def answers(
        self, encoded: QuestionRows, contexts: list[str], reduced: dict[str, np.ndarray]
    ) -> Answers:
        """The answer to each question from the reduced outputs of all its windows."""
        return scored_answers(encoded, contexts, reduced, n_best=self.n_best_size, rules=self.rules)

    def fitted(self, data: TaskData, reduced: dict[str, np.ndarray]) -> Self:
        """The same task with the null threshold that gives the best F1, if it is to be tuned."""
        if not (self.tune_null_threshold and can_tune(data.source)):
            return self
        threshold = tuned_threshold(data.source, self.predict(data, reduced))
        return dataclasses.replace(self, null_score_diff_threshold=threshold)

    def predict(self, data: TaskData, reduced: dict[str, np.ndarray]) -> dict[str, Any]:
        """The answer to each question, its place in the context and its probability."""
        return answer_columns(self.answers(data.details, data.source.contexts, reduced))

    def measure(self, source: Questions, predicted: dict[str, Any]) -> TaskResults:
        """Exact match and F1; an answer, its place, probability and rivals per question."""
        threshold = self.null_score_diff_threshold if self.may_be_unanswerable else None
        return question_results(source, predicted, null_threshold=threshold)
