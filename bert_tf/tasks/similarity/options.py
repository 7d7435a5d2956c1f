"""Options, inputs and outputs of similarity, without TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from bert_tf.base.errors import UsageError
from bert_tf.config.section import option, optional, repeatable
from bert_tf.config.sections.finetuning import FinetuneConfig
from bert_tf.config.sections.scoring import normalize_option, pooling_option
from bert_tf.config.values import Bounds
from bert_tf.tasks.base.declaration import (
    PredictionField,
    TaskDeclaration,
    by_length,
    faults_of_length,
    holds_text,
)

if TYPE_CHECKING:
    from bert_tf.data.tables.sketches import TableSketch

RANKING = "multiple-negatives-ranking"
TRIPLET = "triplet"
COSENT = "cosent"
EUCLIDEAN = "euclidean"
COSINE = "cosine"
SCALE = 20.0
TRIPLET_MARGIN = 5.0
NEGATIVE = "negative"
SCORE = "score"
RETRIEVAL_METRICS = ("mrr@10", "recall@1", "recall@10")
TRIPLET_METRICS = ("triplet_accuracy", *RETRIEVAL_METRICS)
SCORE_METRICS = ("spearman", "pearson")
_COLUMNS = {RANKING: ("anchor", "positive"), TRIPLET: ("anchor", "positive")}
_SCORED_COLUMNS = ("text", "text_pair")
_FIRST = (
    "anchor",
    "query",
    "question",
    "text",
    "sentence1",
    "premise",
    "question1",
    "text_a",
    "text1",
    "sentence_a",
    "#1 string",
)
_SECOND = (
    "positive",
    "pos",
    "passage",
    "answer",
    "document",
    "text_pair",
    "sentence2",
    "hypothesis",
    "question2",
    "text_b",
    "text2",
    "sentence_b",
    "#2 string",
)
_NEGATIVE = ("negative", "neg", "hard_negative")
_SCORE = ("score", "similarity", "label", "similarity_score")


class SimilarityConfig(FinetuneConfig):
    """Fine-tunes a model whose embeddings of similar texts are close."""

    metrics: ClassVar[tuple[str, ...]] = (*SCORE_METRICS, *TRIPLET_METRICS)

    loss: str = option(
        f"loss, named as in sentence-transformers: {RANKING} (rows of an anchor and a matching "
        f"text; all other texts of the batch are negatives), {TRIPLET} (rows of anchor, positive "
        f"and negative), {COSENT} (rows of two texts and a score)",
        choices=(RANKING, TRIPLET, COSENT),
    )
    text_column: str | None = optional(
        f"column of the first text (default: anchor, or text with --loss {COSENT})"
    )
    text_pair_column: str | None = optional(
        f"column of the second text (default: positive, or text_pair with --loss {COSENT})"
    )
    negative_column: tuple[str, ...] = repeatable(
        "column of a text that does not match the anchor; repeatable (default: negative with "
        f"--loss {TRIPLET}, otherwise none)"
    )
    label_column: str | None = optional(
        f"column of the similarity score of a pair, any number, with --loss {COSENT} (default: "
        f"{SCORE})"
    )
    pooling: str | None = pooling_option()
    normalize: bool | None = normalize_option()
    scale: Annotated[float, Bounds(maximum=1000.0, above=0.0)] | None = optional(
        "factor of cosine similarities in the loss, the inverse of a temperature (default: "
        f"{SCALE:g})"
    )
    triplet_margin: Annotated[float, Bounds(above=0.0)] | None = optional(
        f"minimum margin between the distances to negative and positive, with --loss {TRIPLET} "
        f"(default: {TRIPLET_MARGIN:g})"
    )
    triplet_distance: str | None = optional(
        f"distance between vectors, with --loss {TRIPLET} (default: {EUCLIDEAN})",
        choices=(EUCLIDEAN, COSINE),
    )
    best_metric: str | None = optional(
        "metric on the evaluation rows that selects the epoch saved in best/: "
        f"{', '.join(SCORE_METRICS)} for scored pairs, {', '.join(RETRIEVAL_METRICS)} for others, "
        "triplet_accuracy for rows with negatives, or loss (default: spearman, triplet_accuracy "
        "or mrr@10)"
    )

    @property
    def text_columns(self) -> tuple[str, str]:
        first, second = _COLUMNS.get(self.loss, _SCORED_COLUMNS)
        return self.text_column or first, self.text_pair_column or second

    @property
    def negative_columns(self) -> tuple[str, ...]:
        return self.negative_column or ((NEGATIVE,) if self.loss == TRIPLET else ())

    @property
    def needed_columns(self) -> dict[str, str]:
        first, second = self.text_columns
        return {first: "text_column", second: "text_pair_column", **super().needed_columns}

    @property
    def compares_rows(self) -> bool:
        return self.loss != TRIPLET

    @property
    def own_metrics(self) -> tuple[str, ...]:
        """The metrics of rows of this kind, the deciding one first."""
        if self.loss == COSENT:
            return SCORE_METRICS
        return TRIPLET_METRICS if self.negative_columns else RETRIEVAL_METRICS

    @property
    def selection_metric(self) -> str:
        return self.best_metric or self.own_metrics[0]

    def faults(self) -> Iterator[str]:
        yield from self._faults_of_options()
        if self.compares_rows:
            yield from self._faults_of_batches()

    def _faults_of_options(self) -> Iterator[str]:
        yield from faults_of_length(self, 3)
        if self.best_metric in self.metrics and self.best_metric not in self.own_metrics:
            yield (
                f"best_metric: {self.best_metric} is not measured on such rows; choose one of "
                f"{', '.join((*self.own_metrics, 'loss'))}"
            )
        if self.loss == TRIPLET and len(self.negative_columns) > 1:
            yield (
                f"negative_column: {TRIPLET} takes one negative of each row; use loss {RANKING} "
                "for several"
            )
        for key, losses in (
            ("negative_column", (RANKING, TRIPLET)),
            ("label_column", (COSENT,)),
            ("scale", (RANKING, COSENT)),
            ("triplet_margin", (TRIPLET,)),
            ("triplet_distance", (TRIPLET,)),
        ):
            if getattr(self, key) not in (None, ()) and self.loss not in losses:
                yield (
                    f"{key}: does not apply to loss {self.loss}; it is for {' and '.join(losses)}"
                )

    def _faults_of_batches(self) -> Iterator[str]:
        why = f"{self.loss} compares each row with all others of its batch"
        if self.batch_size is not None and self.batch_size < 2:
            yield f"batch_size: {why}; use at least 2"
        if self.gradient_accumulation_steps > 1:
            yield (
                f"gradient_accumulation_steps: {why}, which the parts of a batch would not be; "
                f"use 1, or loss {TRIPLET}"
            )
        if self.strategy != "default":
            yield (
                f"strategy: {why}, of which each replica would see a part; use default, or loss "
                f"{TRIPLET}"
            )


def likely_columns(table: TableSketch) -> dict[str, Any]:
    """Choose the columns of texts, negatives and scores, and the loss that fits them.

    Texts with a number are scored pairs, those with a column called negative are triplets. See
    `TaskDeclaration.columns`.

    Raises:
        UsageError: a needed column is missing, or the labels are classes.
    """
    loss = table.chosen.get("loss")
    is_text: dict[str, Any] = {"fits": holds_text, "rank": by_length}
    first = table.column("text_column", "the first text", names=_FIRST, **is_text)
    second = table.column(
        "text_pair_column", "the second text", names=_SECOND, taken=(first,), **is_text
    )
    score = None
    if loss in (None, COSENT):
        score = table.find(
            "label_column",
            names=_SCORE,
            fits=lambda column: column.is_quantity,
            taken=(first, second),
        )
    if score == "label" and first.lower() == "premise" and "label_column" not in table.chosen:
        raise UsageError(
            f"{table.path}: labels of premises and hypotheses are classes, no scores; keep the "
            "rows of entailment without the column, or fine-tune for the classes"
        )
    if loss == COSENT and score is None:
        raise table.missing("label_column", "the score of a pair")
    settings: dict[str, Any] = {"text_column": first, "text_pair_column": second}
    if score is not None:
        return {"loss": COSENT, **settings, "label_column": score}
    taken = (first, second)
    negative = table.find("negative_column", names=_NEGATIVE, fits=holds_text, taken=taken)
    if negative is not None:
        settings["negative_column"] = [negative]
    if loss == TRIPLET and negative is None:
        raise table.missing("negative_column", "a text that does not match")
    return {"loss": loss or RANKING, **settings}


SIMILARITY = TaskDeclaration(
    name="similarity",
    summary="embeddings of texts, and the similarity of two texts",
    options=SimilarityConfig,
    example=(
        "bert-pipeline finetune similarity --train pairs.csv --eval dev.csv --init bert "
        "--output encoder"
    ),
    inputs=("text", "text_pair"),
    predictions=(PredictionField("predicted_similarity", "value"),),
    implementation="bert_tf.tasks.similarity.task:SimilarityTask",
    host="bert_tf.tasks.similarity.metrics:SimilarityHost",
    page="bert_tf.tasks.similarity.page:sections",
    columns=likely_columns,
)
