"""Tagging of words from CoNLL columns, lists of words and texts with entities."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.base.wording import quantity
from bert_tf.config.bert import BertConfig
from bert_tf.config.sections import EvaluateConfig
from bert_tf.config.sections.scoring import given_columns
from bert_tf.data.rows.holdout import RowGroups
from bert_tf.data.tables.dialect import PLAIN as PLAIN_DIALECT
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.rejects import reasons_first
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.models.heads import BertTokenClassifier
from bert_tf.tasks.base.declaration import TaskCard, TaskDeclaration
from bert_tf.tasks.base.host_task import kept_if_set
from bert_tf.tasks.base.labels import label_table
from bert_tf.tasks.base.task import Task, TaskData, TaskResults, cross_entropy, weighted_hits
from bert_tf.tasks.tagging.card import tagging_card
from bert_tf.tasks.tagging.host import best_tags, tag_predictions
from bert_tf.tasks.tagging.options import PLAIN, TAGGING, TaggingConfig
from bert_tf.tasks.tagging.results import tagging_results
from bert_tf.tasks.tagging.rows.gold_tags import gold_labels, gold_tags
from bert_tf.tasks.tagging.rows.tag_checks import (
    check_sentence_column,
    checked_tags,
    scheme_of,
    usual_tags,
)
from bert_tf.tasks.tagging.rows.tagged_text import TagColumns
from bert_tf.tasks.tagging.rows.tagged_texts import TaggedTexts, read_tagged_texts
from bert_tf.tasks.tagging.rows.word_rows import WordRows, encode_words
from bert_tf.tasks.tagging.schemes import kinds_of_tags, recognized_scheme
from bert_tf.tasks.tagging.serving import TextTagger
from bert_tf.tasks.tagging.training_labels import (
    label_doubts,
    label_rows,
    learned_labels,
)
from bert_tf.training.protocols import Batch, LossParts
from bert_tf.weights.import_weights import architecture, classifier_labels
from bert_tf.weights.model_directory import ModelDirectory


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaggingTask(Task):
    """A tag for each word (Devlin et al. 2019, section 5.3), by the word's first token.

    Attributes:
        columns: where files have what.
        scheme: how tags mark entities, `plain` if they do not.
        labels: tags in the order of the logits.
        max_seq_length, window_stride: tokens of a row, and between two windows.
        tag_names: of tags that files have as numbers; () where they are texts.
    """

    declaration: ClassVar[TaskDeclaration] = TAGGING

    columns: TagColumns
    scheme: str
    labels: tuple[str, ...]
    max_seq_length: int
    window_stride: int
    tag_names: tuple[str, ...] = kept_if_set(())

    @classmethod
    def from_training(cls, config: TaggingConfig, console: Console) -> tuple[Self, TaggedTexts]:
        """Reads the training rows; finds their scheme and labels.

        Raises:
            InputError: there are no two tags.
        """
        columns = TagColumns(
            text=config.text_column,
            tokens=config.tokens_column,
            tags=config.tag_column,
            entities=config.entities_column,
            sentence=config.sentence_column,
        )
        texts = read_tagged_texts(
            config.train,
            columns,
            dialect=TableDialect.of(config),
            max_rows=config.max_train_rows,
            console=console,
        )
        with reasons_first(texts):
            check_sentence_column(texts, config.sentence_column)
            texts = usual_tags(texts, config.scheme, config.names, console)
            scheme = scheme_of(texts, config.scheme)
        texts = checked_tags(texts, scheme, None, console)
        with reasons_first(texts):
            labels = learned_labels(texts, scheme)
        task = cls(
            columns=columns,
            scheme=scheme,
            labels=labels,
            max_seq_length=config.sequence_length,
            window_stride=config.window_stride,
            tag_names=config.names,
        )
        for line in label_doubts(label_rows(texts, scheme), scheme):
            console.warn(line)
        return task, texts

    @classmethod
    def from_weights(cls, directory: ModelDirectory) -> Self | None:
        """The task of another library's token classifier, with default columns."""
        if architecture(directory) != BertTokenClassifier.huggingface_class:
            return None
        labels = tuple(classifier_labels(directory))
        longest = directory.config.max_position_embeddings
        return cls(
            columns=TagColumns(
                text=TaggingConfig.text_column,
                tokens=TaggingConfig.tokens_column,
                tags=TaggingConfig.tag_column,
                entities=TaggingConfig.entities_column,
            ),
            scheme=recognized_scheme(dict.fromkeys(labels, 1)),
            labels=labels,
            max_seq_length=min(TaggingConfig.default_sequence_length, longest),
            window_stride=TaggingConfig.window_stride,
        )

    def with_columns(self, config: EvaluateConfig) -> Self:
        """The same task, reading other columns where the config names them."""
        given = given_columns(config, ("text", "tokens", "tag", "entities", "sentence"))
        columns = dataclasses.replace(
            self.columns,
            **{"tags" if name == "tag" else name: column for name, column in given.items()},
        )
        return dataclasses.replace(self, columns=columns)

    def read(
        self, path: str, console: Console, *, dialect: TableDialect = PLAIN_DIALECT
    ) -> TaggedTexts:
        """Reads rows to measure on; those with a type that the model does not know are rejected."""
        texts = read_tagged_texts(path, self.columns, dialect=dialect, console=console)
        known = {*self.labels, *self.kinds}
        texts = usual_tags(texts, self.scheme, self.tag_names, console, known)
        return checked_tags(texts, self.scheme, self.kinds, console)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The types of entities, or the tags where there is no scheme."""
        return kinds_of_tags(self.labels, self.scheme)

    def describe(self, train: TaggedTexts, evaluation: TaggedTexts | None) -> Iterator[str]:
        """The scheme, and the types with their entities or words."""
        counted = "words" if self.scheme == PLAIN else "entities"
        yield f"  tags: {self.scheme}, {quantity(len(self.labels), 'label')}; {counted} by label:"
        rows = None if evaluation is None else label_rows(evaluation, self.scheme)
        yield from label_table(self.kinds, label_rows(train, self.scheme), rows)

    def texts(self, source: TaggedTexts) -> dict[str, list[str]]:
        """`text`."""
        return {"text": source.texts}

    def groups(self, source: TaggedTexts) -> RowGroups:
        """Rows with equal texts stay together; a row's class is its rarest label."""
        classes = gold_labels(source, self.scheme).rarest(len(source))
        return RowGroups(keys=source.texts, classes=classes)

    def encode(
        self, source: TaggedTexts, tokenizer: WordPieceTokenizer, *, training: bool
    ) -> TaskData:
        """Cuts the texts into windows; the first token of a word has its tag.

        As in HuggingFace's `run_ner.py`, the other tokens of a word do not count for the loss. A
        word of the overlap of windows counts in the one that it is predicted from.
        """
        encoded = self._encoded(tokenizer, source.texts)
        gold = gold_tags(source, encoded.words, self.scheme)
        numbers = {label: number for number, label in enumerate(self.labels)}
        words, tags = gold.of_tokens()
        codes = np.array([numbers.get(tag, -1) for tag in tags], np.int32)
        words, codes = words[codes >= 0], codes[codes >= 0]
        tokens = encoded.rows.offsets[encoded.windows[words]] + encoded.positions[words]
        labels = np.zeros(len(encoded.rows.ids), np.int32)
        weights = np.zeros(len(encoded.rows.ids), np.float32)
        labels[tokens], weights[tokens] = codes, 1.0
        return TaskData(
            source=source,
            rows=encoded.rows,
            targets={},
            weights=np.ones(len(encoded.rows), np.float32),
            token_targets={"tag": labels, "tag_weights": weights},
            owners=encoded.texts,
            details=encoded,
            chance_loss=_entropy(np.bincount(codes)),
        )

    def serving_module(self, model: Any, tokenizer: WordPieceTokenizer) -> TextTagger:
        """Entities and tags of texts."""
        return TextTagger(self, model, tokenizer)

    def card(self) -> TaskCard:
        """See `card.tagging_card`."""
        return tagging_card(self)

    def build_model(self, config: BertConfig, *, policy: str) -> BertTokenClassifier:
        """The encoder with a linear layer on every token."""
        return BertTokenClassifier(
            config, num_labels=len(self.labels), dtype=policy, name=self.declaration.name
        )

    def weights(self, batch: Batch) -> dict[str, tf.Tensor]:
        """The number of words."""
        return {"loss": tf.reduce_sum(batch["tag_weights"])}

    def loss_parts(self, outputs: dict[str, tf.Tensor], batch: Batch) -> LossParts:
        """Cross-entropy and accuracy of the first tokens of words."""
        logits, tags, weights = outputs["logits"], batch["tag"], batch["tag_weights"]
        right = tf.argmax(logits, axis=-1, output_type=tf.int32) == tags
        return LossParts(
            losses={"loss": tf.reduce_sum(cross_entropy(logits, tags) * weights)},
            metrics={"accuracy": weighted_hits(right, weights)},
        )

    def reduce(
        self, data: TaskData, chosen: np.ndarray, outputs: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """The likeliest tag of every token and its probability."""
        return best_tags(outputs["logits"], self.max_seq_length)

    def predict(self, data: TaskData, reduced: dict[str, np.ndarray]) -> dict[str, Any]:
        """Entities and tags of each row."""
        return tag_predictions(data.source.texts, data.details, reduced, self.labels, self.scheme)

    def measure(self, source: TaggedTexts, predicted: dict[str, Any]) -> TaskResults:
        """Metrics of entities and words; gold and predicted entities of each row."""
        return tagging_results(source, predicted, self.scheme)

    def _encoded(self, tokenizer: WordPieceTokenizer, texts: list[str]) -> WordRows:
        return encode_words(
            tokenizer, texts, max_seq_length=self.max_seq_length, stride=self.window_stride
        )


def _entropy(counts: np.ndarray) -> float | None:
    """Of the distribution with these counts, in nats; None without any."""
    occurring = counts[counts > 0]
    if not len(occurring):
        return None
    fractions = occurring / occurring.sum()
    return float(-(fractions * np.log(fractions)).sum())
