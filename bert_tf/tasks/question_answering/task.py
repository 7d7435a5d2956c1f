"""Extractive question answering over contexts of any length (SQuAD 1.1 and 2.0)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.config.bert import BertConfig
from bert_tf.config.sections import EvaluateConfig
from bert_tf.config.sections.scoring import given_columns
from bert_tf.data.rows.holdout import RowGroups
from bert_tf.data.tables.dialect import PLAIN, TableDialect
from bert_tf.data.tables.judged import ReadValues
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.models.heads import BertQuestionAnswerer
from bert_tf.serving.graphs.question_answering import QuestionAnswerer, span_logits
from bert_tf.tasks.base.ceiling import Cause
from bert_tf.tasks.base.declaration import TaskCard, TaskDeclaration
from bert_tf.tasks.base.host_task import named_columns
from bert_tf.tasks.base.prediction_rows import TaskResults
from bert_tf.tasks.base.task import (
    Baseline,
    Task,
    cross_entropy,
    weighted_hits,
)
from bert_tf.tasks.base.task_data import ROW_WEIGHTS, TaskData
from bert_tf.tasks.question_answering.ceiling import (
    answer_causes,
    gold_span_logits,
    with_known_answers,
)
from bert_tf.tasks.question_answering.host import (
    check_question_lengths,
    encode_questions,
    located_questions,
    question_targets,
)
from bert_tf.tasks.question_answering.metrics import (
    can_tune,
    exact_match,
    how_tuned,
    percentage,
    question_results,
    tuned_threshold,
)
from bert_tf.tasks.question_answering.options import QUESTION_ANSWERING, QuestionAnsweringConfig
from bert_tf.tasks.question_answering.question_files import QuestionColumns
from bert_tf.tasks.question_answering.rows import Questions, read_questions
from bert_tf.training.protocols import Batch, LossParts
from bert_tf.weights.import_weights import architecture
from bert_tf.weights.model_directory import ModelDirectory

# Of a model of another library, the question and the stride get at most such a part of a row.
_PARTS_OF_A_ROW = 4


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuestionAnsweringTask(Task):
    """A span of the context, or no answer, per question (Devlin et al. 2019, sections 4.2 and 4.3).

    Only a model whose training questions may have no answer leaves questions unanswered.

    Attributes:
        columns: names of the columns.
        max_seq_length, doc_stride, max_query_length, max_answer_length: see `AnswerLengths`.
        n_best_size: number of spans that compete for an answer.
        null_score_diff_threshold, may_be_unanswerable, sentence_margin: see `AnswerRules`.
        tune_null_threshold: whether to take the best threshold on the evaluation rows.
    """

    declaration: ClassVar[TaskDeclaration] = QUESTION_ANSWERING
    ceiling_metrics: ClassVar[tuple[str, ...]] = ("exact_match", "f1")
    perfect_metric: ClassVar[float] = 100.0
    length_flag: ClassVar[str] = "--max-query-length"

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

    @classmethod
    def from_training(
        cls, config: QuestionAnsweringConfig, console: Console
    ) -> tuple[Self, Questions]:
        check_question_lengths(config.sequence_length, config.max_query_length)
        columns = named_columns(QuestionColumns, config)
        questions = read_questions(
            config.train, columns, check_offsets=True, **cls.reading(config, console)
        )
        threshold = config.null_score_diff_threshold
        task = cls.of_options(
            config,
            columns=columns,
            null_score_diff_threshold=threshold or 0.0,
            may_be_unanswerable=not all(questions.answers),
            tune_null_threshold=threshold is None,
        )
        return task, questions

    @classmethod
    def from_weights(cls, directory: ModelDirectory) -> Self | None:
        """Make the task of another library's model, which always answers.

        Weights do not tell whether training questions could have no answer.
        """
        if architecture(directory) != BertQuestionAnswerer.huggingface_class:
            return None
        options = cls.default_options(directory)
        most = options["max_seq_length"] // _PARTS_OF_A_ROW
        return cls.of_weights(
            directory,
            columns=named_columns(QuestionColumns, QuestionAnsweringConfig),
            doc_stride=min(options["doc_stride"], most),
            max_query_length=min(options["max_query_length"], most),
            null_score_diff_threshold=0.0,
            may_be_unanswerable=False,
        )

    def with_columns(self, config: EvaluateConfig) -> Self:
        columns = given_columns(config, ("question", "context", "answer"))
        return dataclasses.replace(self, columns=dataclasses.replace(self.columns, **columns))

    def read(self, path: str, console: Console, *, dialect: TableDialect = PLAIN) -> Questions:
        return read_questions(
            path, self.columns, check_offsets=False, dialect=dialect, console=console
        )

    def describe(self, sources: Mapping[str, Questions]) -> Iterator[str]:
        for name, source in sources.items():
            yield f"  {name}: {source.counted()}"
        if self.may_be_unanswerable and self.tune_null_threshold and "evaluation" in sources:
            yield f"  null threshold: {how_tuned(sources['evaluation'])}"

    def texts(self, source: Questions) -> dict[str, list[str]]:
        return {
            "question": source.questions,
            "context": [source.contexts[index] for index in source.context_index],
        }

    def read_values(self, source: Questions) -> ReadValues:
        columns = self.columns
        names = (columns.question, columns.context, columns.answer, columns.answer_start)
        return ReadValues(
            source=source.source,
            lines=source.lines,
            places=source.places,
            texts=self.texts(source),
            gold={"answer": [next(iter(texts), "") for texts in source.golds]},
            used=tuple(filter(None, names)),
        )

    def groups(self, source: Questions) -> RowGroups:
        return RowGroups(keys=[source.contexts[index] for index in source.context_index])

    def encode(
        self, source: Questions, tokenizer: WordPieceTokenizer, *, training: bool
    ) -> TaskData:
        """Cut the contexts into windows; the target of a window without its answer is [CLS].

        Training rejects questions whose answer has no token; evaluation leaves them out of the
        loss. If no answer of the evaluation rows has a usable start, all rows are left out.
        """
        encoded = encode_questions(
            tokenizer, source.questions, source.contexts, source.context_index, self.host()
        )
        starts, ends, is_located = question_targets(source, encoded)
        if training and not is_located.all():
            located = located_questions(source, is_located)
            return self.encode(located, tokenizer, training=True)
        return TaskData(
            source=source,
            rows=encoded.rows,
            targets={"start_position": starts, "end_position": ends},
            weights=is_located[encoded.windows.question].astype(np.float32),
            owners=encoded.windows.question,
            details=encoded,
        )

    def serving_module(self, model: Any, tokenizer: WordPieceTokenizer) -> QuestionAnswerer:
        host = self.host()
        return QuestionAnswerer(model, tokenizer, host, host.rules)

    def reference_outputs(
        self, model: Any, tokenizer: WordPieceTokenizer, texts: Mapping[str, Sequence[Any]]
    ) -> dict[str, np.ndarray]:
        outputs = super().reference_outputs(model, tokenizer, texts)
        return {"predicted_score": outputs["predicted_score"]}  # odds may be infinite

    def card(self) -> TaskCard:
        columns = self.columns
        unanswered = "a question never remains without an answer"
        if self.may_be_unanswerable:
            tuned = ", tuned for F1 on evaluation rows" if self.tune_null_threshold else ""
            unanswered = (
                "a question may remain without an answer: if the null score exceeds the best "
                f"span's by more than {self.null_score_diff_threshold:.3g}{tuned}"
            )
        sentences = (
            "an answer across sentences is replaced by the best one within a sentence if its score "
            f"is lower by at most {self.sentence_margin:g}"
        )
        return TaskCard(
            title="Question answering model",
            facts=(
                f"reads the columns `{columns.question}` and `{columns.context}`; was trained on "
                f"`{columns.answer}` and `{columns.answer_start}`, or on SQuAD JSON",
                f"contexts of any length, read in windows of {self.max_seq_length} tokens with a "
                f"stride of {self.doc_stride}; answers up to {self.max_answer_length} tokens",
                unanswered,
                *((sentences,) if self.sentence_margin else ()),
            ),
            example={"question": "Who?", "context": "Ada wrote it."},
            signature_output="predicted_answer",
            transformers_class="AutoModelForQuestionAnswering",
            pipeline_tag="question-answering",
            google_script="run_squad.py",
        )

    def build_model(self, config: BertConfig, *, policy: str) -> BertQuestionAnswerer:
        return BertQuestionAnswerer(config, dtype=policy, name="question_answering")

    def outputs(
        self, model: Any, batch: Batch, *, training: bool, dropout_key: tf.Tensor | None
    ) -> dict[str, tf.Tensor]:
        return span_logits(model, batch, training=training, dropout_key=dropout_key)

    def loss_parts(self, outputs: dict[str, tf.Tensor], batch: Batch) -> LossParts:
        start = outputs["start_logits"]
        end = outputs["end_logits"]
        first = batch["start_position"]
        last = batch["end_position"]
        weights = batch[ROW_WEIGHTS]
        losses = 0.5 * (cross_entropy(start, first) + cross_entropy(end, last))
        is_start_right = tf.argmax(start, axis=-1, output_type=tf.int32) == first
        is_end_right = tf.argmax(end, axis=-1, output_type=tf.int32) == last
        both = is_start_right & is_end_right
        return LossParts(
            losses={"loss": tf.reduce_sum(losses * weights)},
            metrics={"span_accuracy": weighted_hits(both, weights)},
        )

    def fitted(self, data: TaskData, reduced: dict[str, np.ndarray]) -> Self:
        if not self.tune_null_threshold:
            return self
        if not can_tune(data.source):
            return dataclasses.replace(self, tune_null_threshold=False)
        threshold = tuned_threshold(data.source, self.predict(data, reduced))
        return dataclasses.replace(self, null_score_diff_threshold=threshold)

    def baseline(self, train: Questions, evaluation: Questions) -> Baseline:
        unanswered = [not listed for listed in evaluation.answers]
        right = percentage(np.array(unanswered)) if self.may_be_unanswerable else 0.0
        return Baseline({"f1": right, "exact_match": right}, "never answering")

    def measure(self, source: Questions, predicted: dict[str, Any]) -> TaskResults:
        threshold = self.null_score_diff_threshold if self.may_be_unanswerable else None
        return question_results(source, predicted, null_threshold=threshold)

    def known_targets(self, data: TaskData) -> TaskData:
        return with_known_answers(data)

    def gold_outputs(self, data: TaskData) -> Callable[[np.ndarray], dict[str, np.ndarray]]:
        return gold_span_logits(data)

    def is_right(self, row: Mapping[str, Any]) -> bool:
        answers = row["answers"] or [""]
        return any(exact_match(row["predicted_answer"], answer) for answer in answers)

    def ceiling_causes(self, data: TaskData, missed: np.ndarray) -> Iterator[Cause]:
        return answer_causes(self, data, missed)
