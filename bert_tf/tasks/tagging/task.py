"""Tagging of words from CoNLL columns, lists of words and texts with entities."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError
from bert_tf.base.wording import quantity
from bert_tf.config.bert import BertConfig
from bert_tf.config.sections import EvaluateConfig
from bert_tf.config.sections.scoring import given_columns
from bert_tf.data.rows.holdout import RowGroups
from bert_tf.data.tables.dialect import PLAIN as PLAIN_DIALECT
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.judged import SHOWN_ROWS, ReadValues, Spans, shown_words, spread
from bert_tf.data.tables.word_blocks import TOKENS
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.models.heads import BertTokenClassifier
from bert_tf.serving.graphs.tagging import EntityTag, TextTagger
from bert_tf.tasks.base.ceiling import Cause
from bert_tf.tasks.base.declaration import TaskCard, TaskDeclaration
from bert_tf.tasks.base.host_task import kept_if_set, named_columns
from bert_tf.tasks.base.labels import LabelRows, label_table, labels_on_card, suspicious_labels
from bert_tf.tasks.base.prediction_rows import TaskResults
from bert_tf.tasks.base.task import (
    Baseline,
    Task,
    cross_entropy,
    weighted_hits,
)
from bert_tf.tasks.base.task_data import TaskData
from bert_tf.tasks.tagging.ceiling import entity_causes, gold_tag_logits
from bert_tf.tasks.tagging.gold import gold_labels, learned_tags, skipped_words
from bert_tf.tasks.tagging.metrics import tagging_results
from bert_tf.tasks.tagging.options import PLAIN, TAGGING, TaggingConfig
from bert_tf.tasks.tagging.row_forms import TagColumns
from bert_tf.tasks.tagging.schemes import (
    OUTSIDE,
    Prefix,
    TagParts,
    closing_tag,
    kinds_of_tags,
    recognized_scheme,
    scheme_tags,
    tag_parts,
)
from bert_tf.tasks.tagging.tagged_texts import (
    TaggedTexts,
    check_sentence_column,
    checked_tags,
    read_tagged_texts,
    scheme_of,
    usual_tags,
)
from bert_tf.training.protocols import Batch, LossParts
from bert_tf.weights.import_weights import architecture, classifier_labels
from bert_tf.weights.model_directory import ModelDirectory

# More labels than both allow are a reason to doubt the column.
_MANY_LABELS = 100
_MOST_LABELS_PER_ENTITY = 0.05


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaggingTask(Task):
    """A tag for each word (Devlin et al. 2019, section 5.3), by the word's first token.

    Attributes:
        columns: names of the columns.
        scheme: scheme of the tags, `plain` if they do not mark entities.
        labels: tags in the order of the logits.
        max_seq_length: most tokens of a window.
        window_stride: tokens from the start of a window to the start of the next one.
        tag_names: names of tags that files have as numbers.
    """

    declaration: ClassVar[TaskDeclaration] = TAGGING
    ceiling_metrics: ClassVar[tuple[str, ...]] = ("f1", "offset_f1")

    columns: TagColumns
    scheme: str
    labels: tuple[str, ...]
    max_seq_length: int
    window_stride: int
    tag_names: tuple[str, ...] = kept_if_set(())

    @classmethod
    def from_training(cls, config: TaggingConfig, console: Console) -> tuple[Self, TaggedTexts]:
        columns = named_columns(TagColumns, config, tags=config.tag_column)
        texts = read_tagged_texts(config.train, columns, **cls.reading(config, console))
        with texts.reasons_first():
            check_sentence_column(texts, config.sentence_column)
            texts = usual_tags(texts, config.scheme, config.names, console)
            scheme = scheme_of(texts, config.scheme)
        texts = checked_tags(texts, scheme, None, console)
        with texts.reasons_first():
            labels = learned_labels(texts, scheme)
        console.warn(*label_doubts(label_rows(texts, scheme), scheme))
        task = cls.of_options(
            config, columns=columns, scheme=scheme, labels=labels, tag_names=config.names
        )
        return task, texts

    @classmethod
    def from_weights(cls, directory: ModelDirectory) -> Self | None:
        if architecture(directory) != BertTokenClassifier.huggingface_class:
            return None
        labels = tuple(classifier_labels(directory))
        return cls.of_weights(
            directory,
            columns=named_columns(TagColumns, TaggingConfig, tags=TaggingConfig.tag_column),
            scheme=recognized_scheme(dict.fromkeys(labels, 1)),
            labels=labels,
        )

    def with_columns(self, config: EvaluateConfig) -> Self:
        named = given_columns(config, ("text", "tokens", "tag", "entities", "sentence"))
        if "tag" in named:
            named["tags"] = named.pop("tag")
        return dataclasses.replace(self, columns=dataclasses.replace(self.columns, **named))

    def read(
        self, path: str, console: Console, *, dialect: TableDialect = PLAIN_DIALECT
    ) -> TaggedTexts:
        """Read labeled rows, and reject those with a type that the model does not know."""
        texts = read_tagged_texts(path, self.columns, dialect=dialect, console=console)
        known = {*self.labels, *self.kinds}
        texts = usual_tags(texts, self.scheme, self.tag_names, console, known)
        return checked_tags(texts, self.scheme, self.kinds, console)

    @property
    def kinds(self) -> tuple[str, ...]:
        return kinds_of_tags(self.labels, self.scheme)

    def describe(self, sources: Mapping[str, TaggedTexts]) -> Iterator[str]:
        counted = "words" if self.scheme == PLAIN else "entities"
        yield f"  tags: {self.scheme}, {quantity(len(self.labels), 'label')}; {counted} by label:"
        rows = {name: label_rows(texts, self.scheme) for name, texts in sources.items()}
        yield from label_table(self.kinds, rows)

    def texts(self, source: TaggedTexts) -> dict[str, list[str]]:
        return {"text": source.texts}

    def read_values(self, source: TaggedTexts) -> ReadValues:
        sample = source.selected(np.array(spread(len(source)), np.int64), [])
        marks = list(sample.marks_of_rows())
        columns = self.columns
        name = (columns.tokens or TOKENS) if source.has_words else columns.text
        shown: list[dict[str, Any]] = []
        for text, (words, tags) in zip(sample.texts[:SHOWN_ROWS], marks, strict=False):
            tagged = shown_words(words, tags)
            if source.has_words:
                shown.append({name: tagged})
            else:
                shown.append({name: text, "entities": tagged})
        entities = None
        if not source.has_words:
            entities = Spans(rows=sample.owners, starts=sample.starts, ends=sample.ends)
        return ReadValues(
            source=source.source,
            lines=sample.lines,
            places=sample.places,
            texts={} if source.has_words else {name: sample.texts},
            labels=source.tags,
            words=[words for words, _ in marks] if source.has_words else (),
            words_have_lines=len(set(source.mark_lines)) > len(source),
            is_words_column_given=columns.tokens is not None,
            entities=entities,
            used=[each for each in vars(columns).values() if each is not None],
            shown=shown,
        )

    def groups(self, source: TaggedTexts) -> RowGroups:
        classes = gold_labels(source, self.scheme).rarest(len(source))
        return RowGroups(keys=source.texts, classes=classes)

    def encode(
        self, source: TaggedTexts, tokenizer: WordPieceTokenizer, *, training: bool
    ) -> TaskData:
        """Cut the texts into windows; the first token of each of BERT's words has a tag.

        See `learned_tags`. The other tokens do not count for the loss, as in HuggingFace's
        `run_ner.py`. A word in several windows counts in the one that predicts it.
        """
        encoded = self.host().word_rows(tokenizer, source.texts)
        learned = learned_tags(source, encoded.words, self.scheme)
        numbers = {label: number for number, label in enumerate(self.labels)}
        # Words whose tag the model does not have do not count for the loss.
        codes = np.array([numbers.get(tag, -1) for tag in learned.tags], np.int32)
        known = codes >= 0
        words = learned.chosen[known]
        codes = codes[known]
        word_weights = learned.weights[known]
        tokens = encoded.rows.offsets[encoded.windows[words]] + encoded.positions[words]
        labels = np.zeros(len(encoded.rows.ids), np.int32)
        labels[tokens] = codes
        weights = np.zeros(len(encoded.rows.ids), np.float32)
        weights[tokens] = word_weights
        return TaskData(
            source=source,
            rows=encoded.rows,
            targets={},
            weights=np.ones(len(encoded.rows), np.float32),
            token_targets={"tag": labels, "tag_weights": weights},
            owners=encoded.texts,
            details=encoded,
            notes=skipped_words(source, learned.skipped),
            chance_loss=_entropy(np.bincount(codes, weights=word_weights)),
        )

    def serving_module(self, model: Any, tokenizer: WordPieceTokenizer) -> TextTagger:
        return TextTagger(
            model,
            tokenizer,
            tags=entity_tags(self.labels, self.scheme),
            max_seq_length=self.max_seq_length,
            window_stride=self.window_stride,
        )

    def card(self) -> TaskCard:
        return TaskCard(
            title="Tagger of words",
            facts=(
                labels_on_card(self.labels, f"tags ({self.scheme})"),
                f"reads texts from the column `{self.columns.text}`; words are separated by spaces "
                "and punctuation, except punctuation that by its tag belongs to a word; the first "
                "token of a word decides its tag",
                f"texts of any length, read in windows of {self.max_seq_length} tokens with a "
                f"stride of {self.window_stride}; a word is tagged in the window where it has most "
                "context",
                "`predicted_entities` is a JSON list with start and end (characters), label, text "
                "and score (mean probability of the words' tags); `predicted_tags` has every word",
            ),
            example={"text": "Ada Lovelace was born in London."},
            signature_output="predicted_entities",
            transformers_class="AutoModelForTokenClassification",
            pipeline_tag="token-classification",
            metric_types={"macro_f1": "f1", "strict_f1": "f1"},
        )

    def build_model(self, config: BertConfig, *, policy: str) -> BertTokenClassifier:
        return BertTokenClassifier(
            config, num_labels=len(self.labels), dtype=policy, name=self.declaration.name
        )

    def weights(self, batch: Batch) -> dict[str, tf.Tensor]:
        return {"loss": tf.reduce_sum(batch["tag_weights"])}

    def loss_parts(self, outputs: dict[str, tf.Tensor], batch: Batch) -> LossParts:
        logits = outputs["logits"]
        tags = batch["tag"]
        weights = batch["tag_weights"]
        right = tf.argmax(logits, axis=-1, output_type=tf.int32) == tags
        return LossParts(
            losses={"loss": tf.reduce_sum(cross_entropy(logits, tags) * weights)},
            metrics={"accuracy": weighted_hits(right, weights)},
        )

    def baseline(self, train: TaggedTexts, evaluation: TaggedTexts) -> Baseline:
        if self.scheme != PLAIN:
            return Baseline({"f1": 0.0, "macro_f1": 0.0}, "finding no entities")
        # Without a scheme, every word has a label, so that the baseline is the most frequent one.
        ((frequent, _),) = Counter(train.tags).most_common(1)
        share = evaluation.tags.count(frequent) / len(evaluation.tags)
        return Baseline({"f1": share, "accuracy": share}, f"always predicting {frequent!r}")

    def measure(self, source: TaggedTexts, predicted: dict[str, Any]) -> TaskResults:
        return tagging_results(source, predicted, self.scheme)

    def gold_outputs(self, data: TaskData) -> Callable[[np.ndarray], dict[str, np.ndarray]]:
        return gold_tag_logits(data, len(self.labels))

    def is_right(self, row: Mapping[str, Any]) -> bool:
        marked = "annotated_entities" if "annotated_entities" in row else "entities"
        return _spans(row[marked]) == _spans(row["predicted_entities"])

    def ceiling_causes(self, data: TaskData, missed: np.ndarray) -> Iterator[Cause]:
        return entity_causes(data, self.scheme)


def _spans(entities: Sequence[Mapping[str, Any]]) -> list[tuple[int, int, str]]:
    """Return start, end and label of each entity."""
    return [(entity["start"], entity["end"], entity["label"]) for entity in entities]


def _entropy(counts: np.ndarray) -> float | None:
    """Return the entropy of a distribution in nats, from counts or weights; None without any."""
    occurring = counts[counts > 0]
    if not len(occurring):
        return None
    fractions = occurring / occurring.sum()
    return float(-(fractions * np.log(fractions)).sum())


def entity_tags(labels: Sequence[str], scheme: str) -> list[EntityTag]:
    """Return the labels as the exported graph needs them, in their order."""
    parts = [tag_parts(label, scheme) or TagParts(Prefix.OUT, "") for label in labels]
    # Without a scheme, neighbors with the same tag are one entity in the output.
    joining = (Prefix.SINGLE,) if scheme == PLAIN else (Prefix.INSIDE, Prefix.END)
    return [
        EntityTag(
            label,
            kind,
            opens=prefix in (Prefix.BEGIN, Prefix.SINGLE),
            closes=prefix in (Prefix.OUT, Prefix.END, Prefix.SINGLE),
            joins=prefix in joining,
            closed=closing_tag(label, scheme),
        )
        for label, (prefix, kind) in zip(labels, parts, strict=True)
    ]


def learned_labels(texts: TaggedTexts, scheme: str) -> tuple[str, ...]:
    """Return the labels of the logits: O first, then every tag of the types that occur, sorted.

    Raises:
        InputError: every word has the same tag.
    """
    is_tagged = texts.has_words
    kinds = kinds_of_tags(texts.tags, scheme) if is_tagged else tuple(dict.fromkeys(texts.tags))
    tags = sorted(scheme_tags(kinds, scheme))
    # Tagged words without a scheme only need O if some have it. Others may be outside of entities.
    needs_outside = scheme != PLAIN or not is_tagged or OUTSIDE in texts.tags
    labels = (OUTSIDE, *tags) if needs_outside else tuple(tags)
    if len(labels) < 2:
        raise InputError(
            f"{texts.source}: {labels[0]!r} is the tag of every word; tagging needs at least two "
            "tags; name another column by --tag-column"
        )
    return labels


def label_rows(texts: TaggedTexts, scheme: str) -> LabelRows:
    """Count the type of each entity, or without a scheme the tag of each word, with its line."""
    gold = gold_labels(texts, scheme)
    return LabelRows(texts.source, gold.labels, gold.lines, noun=_noun(scheme), places=texts.places)


def label_doubts(rows: LabelRows, scheme: str) -> Iterator[str]:
    """Yield lines on likely mistakes: a wrong column, or the labels of `suspicious_labels`."""
    count = rows.counts.total()
    if len(rows.counts) <= max(_MANY_LABELS, _MOST_LABELS_PER_ENTITY * count):
        yield from suspicious_labels(rows)
    else:
        yield (
            f"{rows.source}: {len(rows.counts):,} labels of {quantity(count, _noun(scheme))}; "
            "is it the right column?"
        )


def _noun(scheme: str) -> str:
    return "word" if scheme == PLAIN else "entity"
