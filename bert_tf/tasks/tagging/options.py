"""Options, inputs and outputs of tagging, without TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from bert_tf.config.section import PositiveInt, option, optional, repeatable
from bert_tf.config.sections.finetuning import FinetuneConfig, names_in, repeated_names
from bert_tf.tasks.base.declaration import (
    PredictionField,
    TaskDeclaration,
    WordsDeclaration,
    faults_of_length,
)

if TYPE_CHECKING:
    from bert_tf.data.tables.sketches import ColumnSketch, TableSketch

AUTO = "auto"
PLAIN = "plain"
SCHEMES = ("bio", "bilou", "iobes")
_TOKENS = ("tokens", "words", "token", "word")
_TAGS = ("tags", "ner_tags", "pos_tags", "labels", "tag", "ner_tag", "ner", "pos", "label")
_TEXT = ("text", "sentence")
ENTITIES = ("entities", "spans", "annotations", "ents")
LISTED_ENTITIES = ("label", "labels")  # of doccano and Label Studio; elsewhere tags of words


class TaggingConfig(FinetuneConfig):
    """Fine-tunes a model that tags words: named entities, parts of speech, …."""

    metrics: ClassVar[tuple[str, ...]] = ("f1", "macro_f1", "accuracy")
    headline_metrics: ClassVar[tuple[str, ...]] = ("f1", "precision", "recall")

    train: str = option("training rows: CoNLL columns, JSONL, Parquet, CSV or TSV", reads="table")
    text_column: str = option(
        "column of the text, for rows with entities and rows to score", "text"
    )
    tokens_column: str | None = optional(
        "column of the words; in CoNLL files a column number (default: tokens; 1, in CoNLL-U 2)"
    )
    tag_column: str | None = optional(
        "column of the tags; in CoNLL files a column number (default: tags; the last, in CoNLL-U 4)"
    )
    entities_column: str = option(
        "column of the entities of a text: a list of {start, end, label}, in characters", "entities"
    )
    sentence_column: str | None = optional(
        "column of the sentence, for tables with one word per row (default: sentence, "
        "sentence_id, Sentence # and similar)"
    )
    tag_names: tuple[str, ...] = repeatable(
        "names of tags that the file has as ids from 0: O,B-PER,I-PER"
    )
    scheme: str = option(
        "tagging scheme of entities (auto: detect from the tags; plain: each tag is a separate "
        "label)",
        choices=(AUTO, *SCHEMES, PLAIN),
    )
    window_stride: PositiveInt = option(
        "stride in tokens between windows of a long text; at most the tokens of a window", 64
    )

    @property
    def needed_columns(self) -> dict[str, str]:
        """Leave out the column of the text, which may be that of rows to score."""
        keys = super().needed_columns
        return {column: key for column, key in keys.items() if key != "text_column"}

    @property
    def names(self) -> tuple[str, ...]:
        return names_in(self.tag_names)

    def faults(self) -> Iterator[str]:
        yield from repeated_names("tag_names", self.names)
        yield from faults_of_length(self, 3)


def _have_as_many_words(text: ColumnSketch, tags: ColumnSketch) -> bool:
    """Whether a column of texts has as many words as a column of tags, separated by blanks.

    Sums over all rows suffice for a guess: the reader compares words and tags in each row, and
    rejects rows where their numbers differ. Equal means over as many cells are equal sums.
    """
    return text.filled == tags.filled and text.words == tags.words


def likely_columns(table: TableSketch) -> dict[str, Any]:
    """Choose the columns of words and tags, or of text and entities, see `TaskDeclaration.columns`.

    Raises:
        UsageError: a needed column is missing.
    """
    tokens = table.find("tokens_column", names=_TOKENS)
    entities = table.find("entities_column", names=ENTITIES)
    if entities is None and tokens is None:
        entities = table.find(
            "entities_column", names=LISTED_ENTITIES, fits=lambda each: each.kind == "list"
        )
    text = table.find("text_column", names=_TEXT, taken=(entities,))
    columns = {column.name: column for column in table.columns}
    text_has_words = text in columns and columns[str(text)].kind == "list"
    if tokens is None and text_has_words:
        tokens = text
        entities = None
    if entities is not None and text is not None:
        return {"text_column": text, "entities_column": entities}
    tags = table.find("tag_column", names=_TAGS, taken=(tokens,))
    may_be_words = tokens is None and text in columns and tags in columns
    if may_be_words and _have_as_many_words(columns[str(text)], columns[str(tags)]):
        tokens = text
    if tokens is None:
        raise table.missing("tokens_column", "a list of words")
    if tags is None:
        raise table.missing("tag_column", "a list of tags")
    return {"tokens_column": tokens, "tag_column": tags}


TAGGING = TaskDeclaration(
    name="tagging",
    summary="a tag for every word: named entities, parts of speech",
    options=TaggingConfig,
    example=(
        "bert-pipeline finetune tagging --train train.conll --eval dev.conll --init minilm "
        "--output ner"
    ),
    inputs=("text",),
    predictions=(
        PredictionField("predicted_entities", "json"),
        PredictionField("predicted_tags", "json", is_extra=True),
    ),
    implementation="bert_tf.tasks.tagging.task:TaggingTask",
    host="bert_tf.tasks.tagging.host:TaggingHost",
    page="bert_tf.tasks.tagging.page:sections",
    columns=likely_columns,
    words=WordsDeclaration(
        input="text",
        column="tokens",
        prediction=PredictionField("predicted_token_tags", "json"),
        implementation="bert_tf.tasks.tagging.host:columns_of_rows",
    ),
)
