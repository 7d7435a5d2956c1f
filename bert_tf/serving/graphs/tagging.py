"""Tagging of texts of any length inside one graph."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import tensorflow as tf

from bert_tf.data.text.punctuation import punctuation_bounds
from bert_tf.data.text.vocab_file import CONTINUATION, SPECIALS_OF_TEXT
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.serving.graphs.spans import characters_at_bytes, code_points_at_bytes, cut_texts
from bert_tf.serving.signatures import PROBABILITY_DIGITS
from bert_tf.serving.text_module import TextModule, json_text


class EntityTag(NamedTuple):
    """A label of a tagger.

    Attributes:
        label: the tag.
        kind: type of the entity that a word with the tag is in; "" outside.
        opens: whether a word with the tag never continues an entity.
        closes: whether no entity continues after a word with the tag.
        joins: whether a word with the tag may belong to the word before, see `EntityWriter.joined`.
        closed: tag of a word joined of one with this tag and one whose tag closes the entity.
    """

    label: str
    kind: str
    opens: bool
    closes: bool
    joins: bool
    closed: str


class GraphWords(NamedTuple):
    """Words of texts, and the rows in which the model reads them.

    Attributes:
        word_ids: ragged int32 [windows, (tokens)], the rows.
        text: int32 [words], the text of each word, ascending.
        start_bytes, end_bytes: int64 [words], byte offsets into the text.
        window, position: int32 [words], row of each word, and position of its first token there.
    """

    word_ids: tf.RaggedTensor
    text: tf.Tensor
    start_bytes: tf.Tensor
    end_bytes: tf.Tensor
    window: tf.Tensor
    position: tf.Tensor


def graph_words(
    tokenizer: WordPieceTokenizer, texts: tf.Tensor, *, max_seq_length: int, stride: int
) -> GraphWords:
    """Tokenize texts and cut them into windows; see the task's `encode_words`."""
    tokens, starts, ends = tokenizer.tokenize_with_offsets(texts)
    capacity = max_seq_length - SPECIALS_OF_TEXT
    step = min(stride, capacity)
    lengths = tf.cast(tokens.row_lengths(), tf.int32)
    counts = 1 + (tf.maximum(lengths - capacity, 0) + step - 1) // step

    continues = tf.constant([entry.startswith(CONTINUATION) for entry in tokenizer.vocab])
    begins = ~tf.gather(continues, tokens.flat_values)
    first = tf.cast(tf.where(begins)[:, 0], tf.int32)
    last = tf.concat([first[1:], [tf.size(begins)]], 0)[: tf.size(first)] - 1
    text = tf.cast(tf.gather(tokens.value_rowids(), first), tf.int32)
    place = first - tf.cast(tf.gather(tokens.row_starts(), text), tf.int32)
    nearest = _nearest_windows(
        place, tf.gather(lengths, text), tf.gather(counts, text), capacity=capacity, step=step
    )
    first_window = tf.cumsum(counts, exclusive=True)
    return GraphWords(
        word_ids=_window_rows(tokenizer, tokens, lengths, counts, capacity=capacity, step=step),
        text=text,
        start_bytes=tf.gather(starts.flat_values, first),
        end_bytes=tf.gather(ends.flat_values, last),
        window=tf.gather(first_window, text) + nearest,
        position=1 + place - nearest * step,
    )


def _nearest_windows(
    place: tf.Tensor, lengths: tf.Tensor, counts: tf.Tensor, *, capacity: int, step: int
) -> tf.Tensor:
    """Return the window, int32 [n], in which a token has most context; the first of equals."""
    most = -(-capacity // step)  # windows that hold a token
    window = (place // step)[:, None] - tf.range(most - 1, -1, -1)
    begin = window * step
    end = tf.minimum(begin + capacity, lengths[:, None])
    context = tf.minimum(place[:, None] - begin, end - 1 - place[:, None])
    exists = (window >= 0) & (window < counts[:, None])
    best = tf.argmax(tf.where(exists, context, -1), axis=1, output_type=tf.int32)
    return place // step - (most - 1) + best


def _window_rows(
    tokenizer: WordPieceTokenizer,
    tokens: tf.RaggedTensor,
    lengths: tf.Tensor,
    counts: tf.Tensor,
    *,
    capacity: int,
    step: int,
) -> tf.RaggedTensor:
    """Return `[CLS] window [SEP]` of every window, ragged int32 [windows, (tokens)]."""
    text = tf.repeat(tf.range(tf.size(counts)), counts)
    start = tf.ragged.range(counts).flat_values * step
    length = tf.minimum(capacity, tf.gather(lengths, text) - start)
    begin = tf.gather(tokens.row_starts(), text) + tf.cast(start, tf.int64)
    positions = tf.ragged.range(begin, begin + tf.cast(length, tf.int64))
    cls = tf.fill([tf.size(text), 1], tokenizer.cls_id)
    sep = tf.fill([tf.size(text), 1], tokenizer.sep_id)
    return tf.concat([cls, tf.gather(tokens.flat_values, positions), sep], axis=1)


class EntityWriter:
    """Writes the entities and tags of texts.

    Args:
        tags: labels in the order of the logits.
    """

    def __init__(self, tags: Sequence[EntityTag]):
        numbers = {kind: number for number, kind in enumerate(dict.fromkeys(t.kind for t in tags))}
        self.labels = [tag.label for tag in tags]
        # Numbers from `len(tags)` on are those of the same tags, closed.
        words = [*tags, *(tag._replace(label=tag.closed, closes=True) for tag in tags)]
        self._is_outside = np.array([not tag.kind for tag in words])
        self._opens = np.array([tag.opens for tag in words])
        self._closes = np.array([tag.closes for tag in words])
        self._joins = np.array([tag.joins for tag in words])
        self._kinds = np.array([numbers[tag.kind] for tag in words], np.int32)
        self._kind_texts = [json.dumps(kind, ensure_ascii=False) for kind in numbers]
        self._tag_texts = [json.dumps(tag.label, ensure_ascii=False) for tag in words]

    def joined(
        self, texts: tf.Tensor, words: GraphWords, tags: tf.Tensor, probabilities: tf.Tensor
    ) -> tuple[GraphWords, tf.Tensor, tf.Tensor]:
        """Join words without a blank between them that are one by their tags.

        The task's `joined_words` has the rules. Arguments are those of `outputs`.

        Returns:
            `words`, `tags` and `probabilities` of the joined words. A tag of `len(tags)` or more is
            the closed form of a tag.
        """
        kinds = tf.gather(self._kinds, tags)
        opens = tf.gather(self._opens, tags)
        is_mark = _are_punctuation(code_points_at_bytes(texts, words.text, words.start_bytes))
        closes_before = _shifted(tf.gather(self._closes, tags), True)
        joins = (
            (words.text == _shifted(words.text, -1))
            & (words.start_bytes == _shifted(words.end_bytes, -1))
            & (kinds == _shifted(kinds, -1))
            & tf.gather(self._joins, tags)
            & (is_mark | _shifted(is_mark, False) | (closes_before & ~opens))
        )
        # Without a scheme, all tags open. There, a joined word of only punctuation is split again.
        number = tf.cumsum(tf.cast(~joins, tf.int32)) - 1
        marks_alone = tf.math.unsorted_segment_min(
            tf.cast(is_mark, tf.int32), number, tf.size(number)
        )
        joins &= ~opens | (tf.gather(marks_alone, number) == 0)

        begins = ~joins
        number = tf.cumsum(tf.cast(begins, tf.int32)) - 1
        count = tf.math.count_nonzero(begins, dtype=tf.int32)
        closing = tf.cast(joins & tf.gather(self._closes, tags), tf.int32)
        closed = tf.math.unsorted_segment_max(closing, number, count)
        whole = GraphWords(
            word_ids=words.word_ids,
            text=tf.boolean_mask(words.text, begins),
            start_bytes=tf.boolean_mask(words.start_bytes, begins),
            end_bytes=tf.math.unsorted_segment_max(words.end_bytes, number, count),
            window=tf.boolean_mask(words.window, begins),
            position=tf.boolean_mask(words.position, begins),
        )
        whole_tags = tf.boolean_mask(tags, begins) + len(self.labels) * closed
        return whole, whole_tags, tf.boolean_mask(probabilities, begins)

    def outputs(
        self, texts: tf.Tensor, words: GraphWords, tags: tf.Tensor, probabilities: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Make the columns of predictions.

        Args:
            texts: UTF-8 string [n].
            words: words of the texts.
            tags, probabilities: int32 and float32 [words], number of each word's label, and its
                probability.

        Returns:
            `predicted_entities` and `predicted_tags` (string), `mean_score` (float32), all [n].
        """
        rows = tf.size(texts)
        words, tags, probabilities = self.joined(texts, words, tags, probabilities)
        starts = characters_at_bytes(texts, words.text, words.start_bytes)
        ends = characters_at_bytes(texts, words.text, words.end_bytes)
        listed = tf.strings.join(
            [
                '{"start": ',
                tf.strings.as_string(starts),
                ', "end": ',
                tf.strings.as_string(ends),
                ', "tag": ',
                tf.gather(self._tag_texts, tags),
                ', "score": ',
                tf.strings.as_string(probabilities, precision=PROBABILITY_DIGITS),
                "}",
            ]
        )
        counts = tf.math.unsorted_segment_sum(tf.ones_like(probabilities), words.text, rows)
        totals = tf.math.unsorted_segment_sum(probabilities, words.text, rows)
        return {
            "predicted_entities": self._entities(texts, words, tags, probabilities, starts, ends),
            "predicted_tags": _lists(listed, words.text, rows),
            "mean_score": tf.math.divide_no_nan(totals, counts),
        }

    def _entities(
        self,
        texts: tf.Tensor,
        words: GraphWords,
        tags: tf.Tensor,
        probabilities: tf.Tensor,
        starts: tf.Tensor,
        ends: tf.Tensor,
    ) -> tf.Tensor:
        """Write the list of entities of each text as JSON, string [n]."""
        kinds = tf.gather(self._kinds, tags)
        continues = (
            (words.text == _shifted(words.text, -1))
            & ~_shifted(tf.gather(self._closes, tags), True)
            & (kinds == _shifted(kinds, -1))
            & ~tf.gather(self._opens, tags)
        )
        is_inside = ~tf.gather(self._is_outside, tags)
        begins = is_inside & ~continues
        entities = tf.math.count_nonzero(begins, dtype=tf.int32)
        number = tf.boolean_mask(tf.cumsum(tf.cast(begins, tf.int32)) - 1, is_inside)

        def first(values: tf.Tensor) -> tf.Tensor:
            return tf.boolean_mask(values, begins)

        def greatest(values: tf.Tensor) -> tf.Tensor:
            inside = tf.boolean_mask(values, is_inside)
            return tf.math.unsorted_segment_max(inside, number, entities)

        score = tf.math.unsorted_segment_mean(
            tf.boolean_mask(probabilities, is_inside), number, entities
        )
        owner = first(words.text)
        text = cut_texts(texts, owner, first(words.start_bytes), greatest(words.end_bytes))
        listed = tf.strings.join(
            [
                '{"start": ',
                tf.strings.as_string(first(starts)),
                ', "end": ',
                tf.strings.as_string(greatest(ends)),
                ', "label": ',
                tf.gather(self._kind_texts, first(kinds)),
                ', "text": "',
                json_text(text),
                '", "score": ',
                tf.strings.as_string(score, precision=PROBABILITY_DIGITS),
                "}",
            ]
        )
        return _lists(listed, owner, tf.size(texts))


def _are_punctuation(codes: tf.Tensor) -> tf.Tensor:
    """Return whether code points, int32 [n], are punctuation, bool [n]."""
    below = tf.searchsorted(punctuation_bounds(), codes, side="right")
    return below % 2 == 1


def _lists(items: tf.Tensor, owners: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    """Join the JSON items of each row to a list, string [rows]."""
    joined = tf.strings.unsorted_segment_join(items, owners, rows, separator=", ")
    return tf.strings.join(["[", joined, "]"])


def _shifted(values: tf.Tensor, first: int | bool) -> tf.Tensor:
    """Return the value of the word before each; `first` stands before the first word."""
    return tf.concat([tf.constant([first], values.dtype), values], 0)[:-1]


class TextTagger(TextModule):
    """Finds the entities and tags of `text`.

    Outputs, all [n]: `predicted_entities` and `predicted_tags`, strings of JSON lists of objects,
    see the task's `prediction_columns`; `mean_score`, float32. Not per row: `labels`, string
    [labels].

    Args:
        model: built `BertTokenClassifier` with its weights, float32.
        tokenizer: its tokenizer.
        tags: labels in the order of the logits.
        max_seq_length: tokens of a row, special tokens included.
        window_stride: tokens from the start of a window to the start of the next one.
    """

    input_names: ClassVar[tuple[str, ...]] = ("text",)

    def __init__(
        self,
        model: Any,
        tokenizer: WordPieceTokenizer,
        *,
        tags: Sequence[EntityTag],
        max_seq_length: int,
        window_stride: int,
    ):
        super().__init__(model, tokenizer, max_seq_length)
        self._writer = EntityWriter(tags)
        self._window_stride = window_stride

    def predict(self, texts: dict[str, tf.Tensor], batch_tokens: tf.Tensor) -> dict[str, tf.Tensor]:
        longest = self.max_seq_length
        words = graph_words(
            self.tokenizer, texts["text"], max_seq_length=longest, stride=self._window_stride
        )

        def best_tags(batch: dict[str, tf.Tensor], _: tf.Tensor) -> tuple[tf.Tensor, ...]:
            logits = self.head_outputs(batch)["logits"]
            probabilities = tf.nn.softmax(logits, axis=-1)
            # Batches have different lengths, and results of all must have the same.
            beyond = longest - tf.shape(logits)[1]
            tags = tf.argmax(logits, axis=-1, output_type=tf.int32)
            scores = tf.reduce_max(probabilities, axis=-1)
            padding = [[0, 0], [0, beyond]]
            return tf.pad(tags, padding), tf.pad(scores, padding)

        tags, probabilities = self.over_rows(
            best_tags,
            (words.word_ids, tf.zeros_like(words.word_ids)),
            batch_tokens,
            tf.TensorSpec([longest], tf.int32),
            tf.TensorSpec([longest], tf.float32),
        )
        places = tf.stack([words.window, words.position], axis=1)
        outputs = self._writer.outputs(
            texts["text"], words, tf.gather_nd(tags, places), tf.gather_nd(probabilities, places)
        )
        return {**outputs, "labels": tf.constant(self._writer.labels)}
