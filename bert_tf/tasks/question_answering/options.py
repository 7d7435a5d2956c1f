"""Options, inputs and outputs of question answering, without TensorFlow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from bert_tf.config.section import NonNegativeFloat, PositiveInt, advanced, option
from bert_tf.config.sections.finetuning import FinetuneConfig
from bert_tf.config.values import Bounds
from bert_tf.tasks.base.declaration import PredictionField, TaskDeclaration, by_length

if TYPE_CHECKING:
    from bert_tf.data.tables.sketches import ColumnSketch, TableSketch

_QUESTION = ("question", "query")
_CONTEXT = ("context", "passage", "paragraph", "document", "text")
_ANSWER = ("answer", "answers", "answer_text")
_START = ("answer_start", "answer_starts", "start")


class QuestionAnsweringConfig(FinetuneConfig):
    """Fine-tunes a model that answers questions from contexts."""

    always_needed: ClassVar[tuple[str, ...]] = ("question_column", "context_column")

    metrics: ClassVar[tuple[str, ...]] = ("f1", "exact_match")
    default_sequence_length: ClassVar[int] = 384

    train: str = option("training rows: SQuAD JSON, CSV, TSV, JSONL or Parquet", reads="table")
    question_column: str = option("column of the question", "question")
    context_column: str = option("column of the context", "context")
    answer_column: str = option("column of the answer text", "answer")
    answer_start_column: str = option(
        "column of the character offset of the answer in the context", "answer_start"
    )
    doc_stride: PositiveInt = option(
        "stride in tokens between windows of a long context; at most the tokens of a window", 128
    )
    max_query_length: PositiveInt = option(
        "maximum tokens per question; longer questions are truncated", 64
    )
    max_answer_length: PositiveInt = option("maximum tokens per answer", 30)
    n_best_size: Annotated[int, Bounds(1, 1000)] = advanced("candidate spans per question", 20)
    null_score_diff_threshold: float | None = advanced(
        "predict no answer if the null score exceeds the best span score by more than this "
        "(default: tuned for F1 if the evaluation rows have at least 10 questions with and 10 "
        "without an answer, else 0)",
        None,
    )
    sentence_margin: NonNegativeFloat = advanced(
        "prefer the best answer within one sentence to an answer across sentences if its score "
        "is lower by at most this (0: never)",
        3.0,
    )

    @property
    def remedy_for_long_texts(self) -> str:
        """Return advice on how to cut fewer questions; contexts are read in windows."""
        return f"their questions are cut; raise --max-query-length {self.max_query_length}"


def likely_columns(table: TableSketch) -> dict[str, Any]:
    """Choose the columns of question, context, answer and its start, see `TaskDeclaration.columns`.

    Raises:
        UsageError: a needed column is missing.
    """
    context = table.column(
        "context_column",
        "the context",
        names=_CONTEXT,
        fits=lambda each: each.is_text,
        rank=by_length,
    )
    question = table.column(
        "question_column",
        "the question",
        names=_QUESTION,
        fits=lambda each: each.is_text,
        rank=by_length,
        taken=(context,),
    )
    taken = (context, question)
    answer = table.find("answer_column", names=_ANSWER, fits=lambda each: True, taken=taken)
    if answer is None:
        raise table.missing("answer_column", "the answer")
    columns = {"question_column": question, "context_column": context, "answer_column": answer}
    if any(column.name == answer and _holds_structs(column) for column in table.columns):
        return columns  # structs hold the starts, too
    start = table.find(
        "answer_start_column",
        names=_START,
        fits=lambda each: each.kind != "object",
        taken=(answer,),
    )
    if start is None:
        raise table.missing("answer_start_column", "the answer's first character")
    return {**columns, "answer_start_column": start}


def _holds_structs(column: ColumnSketch) -> bool:
    """Return whether answers include their starts, as in HuggingFace's rows of SQuAD."""
    return column.kind == "object" or column.example.strip("'\"").startswith(("{", "[{"))


QUESTION_ANSWERING = TaskDeclaration(
    name="qa",
    summary="answers to questions, as spans of a context",
    options=QuestionAnsweringConfig,
    example=(
        "bert-pipeline finetune qa --train train-v1.1.json --eval dev-v1.1.json --init minilm "
        "--output qa"
    ),
    inputs=("question", "context"),
    predictions=(
        PredictionField("predicted_answer", "text"),
        PredictionField("predicted_start", "place"),
        PredictionField("predicted_end", "place"),
        PredictionField("predicted_score", "probability"),
        PredictionField("predicted_null_odds", "value", is_extra=True),
        PredictionField("predicted_nbest", "json", is_extra=True),
    ),
    implementation="bert_tf.tasks.question_answering.task:QuestionAnsweringTask",
    host="bert_tf.tasks.question_answering.host:QuestionAnsweringHost",
    page="bert_tf.tasks.question_answering.page:sections",
    columns=likely_columns,
)
