"""Vectors of texts, near each other if the texts are similar (Sentence-BERT)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.config.bert import BertConfig
from bert_tf.config.bert_file import model_folder
from bert_tf.config.embedding_recipe import EmbeddingRecipe
from bert_tf.config.sections import EvaluateConfig
from bert_tf.config.sections.scoring import given_columns
from bert_tf.data.rows.encoded_rows import GroupedRows
from bert_tf.data.rows.holdout import RowGroups
from bert_tf.data.rows.host_rows import pack_host_texts
from bert_tf.data.tables.dialect import PLAIN, TableDialect
from bert_tf.data.tables.file_rows import Table
from bert_tf.data.tables.judged import ReadValues
from bert_tf.data.tables.tables import read_table
from bert_tf.data.tables.value_forms import numbers_of_truths
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.models.heads import BertSentenceEncoder
from bert_tf.serving.graphs.similarity import SimilarityModule
from bert_tf.serving.signatures import EMBEDDING, PAIR_EMBEDDING
from bert_tf.tasks.base.ceiling import Cause
from bert_tf.tasks.base.declaration import TaskCard, TaskDeclaration
from bert_tf.tasks.base.labels import reject_other_labels
from bert_tf.tasks.base.prediction_rows import TaskResults
from bert_tf.tasks.base.task import (
    Baseline,
    Task,
    cross_entropy,
    weighted_hits,
)
from bert_tf.tasks.base.task_data import ROW_WEIGHTS, TaskData
from bert_tf.tasks.similarity.ceiling import (
    match_causes,
    matched_vectors,
    score_causes,
    scored_vectors,
)
from bert_tf.tasks.similarity.losses import cosent_loss, cosines, ranking_logits, triplet_distances
from bert_tf.tasks.similarity.metrics import (
    matched_results,
    pair_predictions,
    scored_results,
    similarities_of,
)
from bert_tf.tasks.similarity.options import (
    COSENT,
    EUCLIDEAN,
    RANKING,
    SCALE,
    SCORE,
    SCORE_METRICS,
    SIMILARITY,
    TRIPLET,
    TRIPLET_MARGIN,
    SimilarityConfig,
)
from bert_tf.training.protocols import Batch, LossParts
from bert_tf.weights.sentence_transformers import read_recipe

_POOLED = {
    "mean": "the mean of all tokens, [CLS] and [SEP] included",
    "cls": "the vector of [CLS]",
    "max": "the maximum of each dimension",
}
_CEILING_TEXTS = 2000


@dataclasses.dataclass(frozen=True, kw_only=True)
class SimilarityColumns:
    """Names of the columns of a table.

    Attributes:
        text: the anchor, or the first text of a scored pair.
        text_pair: its positive, or the second text.
        negative: texts that do not match the anchor.
        label: the score; None for pairs and triplets.
    """

    text: str
    text_pair: str
    negative: tuple[str, ...]
    label: str | None

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.text, self.text_pair, *self.negative)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SimilarityTask(Task):
    """Sentence embeddings from pairs, triplets or scored pairs; see `EmbeddingRecipe`."""

    declaration: ClassVar[TaskDeclaration] = SIMILARITY
    ceiling_metrics: ClassVar[tuple[str, ...]] = (*SCORE_METRICS, "triplet_accuracy", "mrr@10")

    columns: SimilarityColumns
    loss: str
    scale: float
    triplet_margin: float
    triplet_distance: str
    pooling: str
    normalize: bool
    max_seq_length: int

    @classmethod
    def from_training(cls, config: SimilarityConfig, console: Console) -> tuple[Self, Table]:
        """Take the recipe of vectors from the initial model's folder."""
        length = config.sequence_length
        recipe = read_recipe(model_folder(config.init), max_positions=length)
        recipe = (recipe or EmbeddingRecipe(max_seq_length=length)).changed(
            pooling=config.pooling, normalize=config.normalize
        )
        if recipe.changes_texts:
            console.warn(
                f"{config.init}: its prompts and lower-casing of texts (sentence-transformers) are "
                "not used in training, and the trained model has none"
            )
        text, text_pair = config.text_columns
        task = cls.of_options(
            config,
            columns=SimilarityColumns(
                text=text,
                text_pair=text_pair,
                negative=config.negative_columns,
                label=(config.label_column or SCORE) if config.loss == COSENT else None,
            ),
            scale=config.scale or SCALE,
            triplet_margin=config.triplet_margin or TRIPLET_MARGIN,
            triplet_distance=config.triplet_distance or EUCLIDEAN,
            pooling=recipe.pooling,
            normalize=recipe.normalize,
        )
        return task, task.read(config.train, **cls.reading(config, console))

    @property
    def label_column(self) -> str | None:
        return self.columns.label

    def with_columns(self, config: EvaluateConfig) -> Self:
        negative = ("negative",) if self.columns.negative else ()
        label = () if self.label_column is None else ("label",)
        names = (*self.declaration.inputs, *negative, *label)
        columns = given_columns(config, names, lists=("negative",))
        return dataclasses.replace(self, columns=dataclasses.replace(self.columns, **columns))

    def read(
        self, path: str, console: Console, *, dialect: TableDialect = PLAIN, max_rows: int = 0
    ) -> Table:
        """Read the texts of all rows, and their scores if they have one."""
        texts = self.columns.texts
        table = read_table(
            path,
            dialect=dialect,
            text_columns=texts,
            value_columns=() if self.label_column is None else (self.label_column,),
            max_rows=max_rows,
            console=console,
        )
        if self.label_column is None:
            return table
        # Paraphrases are often labeled true or false, which are scores of 1 and 0.
        scores = numbers_of_truths(table.columns[self.label_column])
        table = dataclasses.replace(table, columns={**table.columns, self.label_column: scores})
        return reject_other_labels(table, self.label_column)

    def describe(self, sources: Mapping[str, Table]) -> Iterator[str]:
        for name, table in sources.items():
            if self.label_column is None:
                anchors, *others = self._columns(table)
                yield (
                    f"  {name}: {len(set(anchors)):,} distinct anchors, "
                    f"{len(set().union(*others)):,} distinct candidates for their match"
                )
            else:
                scores = self._scores(table)
                yield (
                    f"  {name}: scores from {scores.min():g} to {scores.max():g}, mean "
                    f"{scores.mean():.5g}"
                )

    def texts(self, source: Table) -> dict[str, list[str]]:
        """Return `text` and `text_pair`.

        The pairs of all rows come first, then every anchor with its negatives.
        """
        first, *others = self._columns(source)
        return {
            "text": first * len(others),
            "text_pair": [text for column in others for text in column],
        }

    def read_values(self, source: Table) -> ReadValues:
        texts = self.columns.texts
        label = self.label_column
        return ReadValues(
            source=source.source,
            lines=source.lines,
            places=source.places,
            texts={column: source.columns[column] for column in texts},
            gold={} if label is None else {label: source.columns[label]},
            used=texts if label is None else (*texts, label),
            pairs_match=label is None,
        )

    def groups(self, source: Table) -> RowGroups:
        first, second, *_ = self._columns(source)
        if self.label_column is None:
            # Only by the anchor: its matches in training would give away those in evaluation.
            return RowGroups(keys=first)
        return RowGroups(keys=list(map("\0".join, zip(first, second, strict=True))))

    def encode(self, source: Table, tokenizer: WordPieceTokenizer, *, training: bool) -> TaskData:
        columns = self._columns(source)
        if self.label_column is None:
            targets = {"text_ids": text_ids(columns)}
        else:
            targets = {"score": self._scores(source).astype(np.float32)}
        # The texts of a row are neighbors, since a batch has whole rows.
        texts = [text for row in zip(*columns, strict=True) for text in row]
        tokens = tokenizer.tokenize_texts(texts)
        rows = pack_host_texts(tokens, max_seq_length=self.max_seq_length, tokenizer=tokenizer)
        return TaskData(
            source=source,
            rows=GroupedRows.of(rows, np.full(len(source), len(columns), np.int64)),
            targets=targets,
            weights=np.ones(len(source), np.float32),
            compares_rows=self.loss != TRIPLET,
        )

    def build_model(self, config: BertConfig, *, policy: str) -> BertSentenceEncoder:
        return BertSentenceEncoder(
            config,
            pooling=self.pooling,
            normalize=self.normalize,
            max_seq_length=self.max_seq_length,
            dtype=policy,
            name=self.declaration.name,
        )

    def outputs(
        self, model: Any, batch: Batch, *, training: bool, dropout_key: tf.Tensor | None
    ) -> dict[str, tf.Tensor]:
        return {"embeddings": model(batch, training=training, dropout_key=dropout_key)}

    def loss_parts(self, outputs: dict[str, tf.Tensor], batch: Batch) -> LossParts:
        """Sum losses, and count the positives that are the nearest of all candidates.

        Losses that compare rows see only a batch; `measure` gives that of all rows.
        """
        embeddings = outputs["embeddings"]
        weights = batch[ROW_WEIGHTS]
        is_row = weights > 0
        if self.loss == COSENT:
            similarities = cosines(embeddings[:, 0], embeddings[:, 1])
            loss = cosent_loss(similarities, batch["score"], is_row, scale=self.scale)
            return LossParts(losses={"loss": loss * tf.reduce_sum(weights)})
        if self.loss == TRIPLET:
            positive, negative = triplet_distances(embeddings, self.triplet_distance)
            losses = tf.nn.relu(positive - negative + self.triplet_margin)
            hits = positive < negative
        else:
            logits = ranking_logits(embeddings, batch["text_ids"], is_row, scale=self.scale)
            own = tf.range(tf.shape(logits)[0])
            losses = cross_entropy(logits, own)
            hits = tf.argmax(logits, axis=-1, output_type=tf.int32) == own
        return LossParts(
            losses={"loss": tf.reduce_sum(losses * weights)},
            metrics={"accuracy": weighted_hits(hits, weights)},
        )

    def reduce(
        self, data: TaskData, chosen: np.ndarray, outputs: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        return outputs

    def predict(self, data: TaskData, reduced: dict[str, np.ndarray]) -> dict[str, Any]:
        vectors = reduced["embeddings"]
        others = vectors.shape[1] - 1
        # One pair for each of the other texts, in the order of `texts`.
        first = np.tile(vectors[:, 0], (others, 1))
        second = vectors[:, 1:].transpose(1, 0, 2).reshape(len(first), -1)
        return pair_predictions(first, second)

    def baseline(self, train: Table, evaluation: Table) -> Baseline:
        chance = {"spearman": 0.0, "pearson": 0.0, "triplet_accuracy": 0.5}
        return Baseline(chance, "vectors that ignore the texts")

    def measure(self, source: Table, predicted: dict[str, Any]) -> TaskResults:
        """Correlate scored pairs, or measure retrieval; the loss is of all rows as one batch."""
        if self.label_column is not None:
            return scored_results(source, self._scores(source), predicted, scale=self.scale)
        first = np.asarray(predicted[EMBEDDING])
        second = np.asarray(predicted[PAIR_EMBEDDING])
        others = second.reshape(-1, len(source), second.shape[-1])
        vectors = np.stack([first[: len(source)], *others], axis=1)
        results = matched_results(
            source,
            vectors,
            text_ids(self._columns(source)),
            predicted,
            scale=self.scale,
        )
        if self.loss == RANKING:
            return results
        return dataclasses.replace(
            results, metrics={**results.metrics, "loss": self._triplet_loss(vectors)}
        )

    @property
    def ceiling_rows(self) -> int:
        """The number of rows to measure for the ceiling; with matches, rows of 2,000 texts.

        Each candidate has a dimension of its own there, so the work grows with the square of the
        texts.
        """
        if self._is_scored:
            return super().ceiling_rows
        return _CEILING_TEXTS // len(self.columns.texts)

    def known_targets(self, data: TaskData) -> TaskData:
        """Return data with its scores. Matches are no targets of a row: all rows are compared."""
        return data if self._is_scored else dataclasses.replace(data, targets={})

    def gold_outputs(self, data: TaskData) -> Callable[[np.ndarray], dict[str, np.ndarray]]:
        return scored_vectors(data) if self._is_scored else matched_vectors(data)

    def is_right(self, row: Mapping[str, Any]) -> bool:
        return self._is_scored or row["rank"] == 1

    def ceiling_causes(self, data: TaskData, missed: np.ndarray) -> Iterator[Cause]:
        flag = f"{self.length_flag} {self.max_seq_length}"
        if self._is_scored:
            return score_causes(data, flag)
        return match_causes(data, text_ids(self._columns(data.source)), flag)

    @property
    def _is_scored(self) -> bool:
        return self.label_column is not None

    def serving_module(self, model: Any, tokenizer: WordPieceTokenizer) -> SimilarityModule:
        return SimilarityModule(model, tokenizer, self.max_seq_length)

    def sequence_outputs(self, model: Any, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return model.encoder.encode_inputs(batch, training=False, dropout_key=None)

    def card(self) -> TaskCard:
        columns = self.columns
        negatives = "".join(f", `{name}` (negative)" for name in columns.negative)
        names = ("anchor", "positive") if self.label_column is None else ("text", "text")
        score = "" if self.label_column is None else f" and `{self.label_column}` (score)"
        settings = f"scale {self.scale:g}"
        if self.loss == TRIPLET:
            settings = f"{self.triplet_distance} distance, margin {self.triplet_margin:g}"
        return TaskCard(
            title="Sentence embedding model",
            facts=(
                f"trained on the columns `{columns.text}` ({names[0]}), `{columns.text_pair}` "
                f"({names[1]}){negatives}{score}",
                f"loss: {self.loss} ({settings}), as sentence-transformers defines it",
                f"vectors: {_POOLED[self.pooling]}"
                + (", divided by their Euclidean norm" if self.normalize else "")
                + "; compared by their cosine",
                f"texts are cut at {self.max_seq_length} tokens",
                "`embed` and `search` of bert-pipeline and the library sentence-transformers make "
                "the same vectors of this folder; its SavedModel has a signature `embed`, which "
                "takes only `text`",
            ),
            example={"text": "some text", "text_pair": "another"},
            signature_output="predicted_similarity",
            transformers_class="AutoModel",
            pipeline_tag="sentence-similarity",
            metric_types={"pearson": "pearsonr", "spearman": "spearmanr"},
        )

    def _triplet_loss(self, vectors: np.ndarray) -> float:
        """Return the mean loss of triplets, float32 [rows, 3, hidden], in NumPy."""
        anchors, positives, negatives, *_ = vectors.astype(np.float64).transpose(1, 0, 2)
        if self.triplet_distance == EUCLIDEAN:
            to_positive = np.linalg.norm(anchors - positives, axis=-1)
            to_negative = np.linalg.norm(anchors - negatives, axis=-1)
        else:
            to_positive = 1 - similarities_of(anchors, positives)
            to_negative = 1 - similarities_of(anchors, negatives)
        return float(np.maximum(to_positive - to_negative + self.triplet_margin, 0).mean())

    def _columns(self, table: Table) -> list[list[str]]:
        return [table.columns[name] for name in self.columns.texts]

    def _scores(self, table: Table) -> np.ndarray:
        assert self.label_column is not None
        return np.array([float(label) for label in table.columns[self.label_column]], np.float64)


def text_ids(columns: Sequence[Sequence[str]]) -> np.ndarray:
    """Return a number for each text, the same for equal ones: int32 [rows, columns].

    Args:
        columns: texts of each row, by column.
    """
    numbers: dict[str, int] = {}
    ids = [[numbers.setdefault(text, len(numbers)) for text in column] for column in columns]
    return np.array(ids, np.int32).T.copy()
