"""Words of texts in windows, and their tags and entities, in NumPy.

Used for training data, for evaluation, and by engines without TensorFlow. The model tags BERT's
words, each a token with the tokens that continue it (`##…`); `words` joins these to the words of
rows. A word in several windows belongs to the window with most tokens on the shorter side of the
word (google-research/bert `_check_is_max_context`).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from bert_tf.base.arrays import flat_ranges, offsets_of
from bert_tf.data.rows.encoded_rows import EncodedRows
from bert_tf.data.rows.host_rows import between_specials
from bert_tf.data.rows.windows import cut_windows
from bert_tf.data.text.host_wordpiece import TokenizedTexts, Tokenizer
from bert_tf.data.text.vocab_file import CONTINUATION, SPECIALS_OF_TEXT
from bert_tf.serving.signatures import PROBABILITY_DIGITS, WORDS_WITHOUT_TOKENS
from bert_tf.tasks.base.declaration import ServedTaskDeclaration
from bert_tf.tasks.base.explained import Outputs, PlacedRow, Target
from bert_tf.tasks.base.host_task import HostRows, HostTask
from bert_tf.tasks.tagging.options import TAGGING
from bert_tf.tasks.tagging.schemes import Spans
from bert_tf.tasks.tagging.words import (
    TaggedWords,
    TextWords,
    given_words,
    joined_words,
    predicted_words,
    tags_of_all,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class WordRows:
    """Texts ready for a model.

    Attributes:
        rows: a row per window.
        texts: int64 [windows], the text of each window, ascending.
        words: BERT's words of the texts.
        windows: int64 [words], the row that predicts each word.
        positions: int64 [words], position of the word's first token in that row.
    """

    rows: EncodedRows
    texts: np.ndarray
    words: TextWords
    windows: np.ndarray
    positions: np.ndarray


def encode_words(
    tokenizer: Tokenizer, texts: Sequence[str], *, max_seq_length: int, stride: int
) -> WordRows:
    """Tokenize texts and cut them into windows.

    Args:
        tokenizer: tokenizer of the model.
        texts: texts of any length.
        max_seq_length: most tokens of a window, [CLS] and [SEP] included.
        stride: tokens from the start of a window to the start of the next one.
    """
    tokens = tokenizer.tokenize_with_characters(texts)
    capacity = max_seq_length - SPECIALS_OF_TEXT
    owner, start, length = cut_windows(tokens.lengths, capacity, stride=stride)
    starts = tokens.offsets[owner] + start  # in the tokens of all texts
    first_tokens, words = _words(tokenizer, tokens)
    windows = _windows_of_tokens(starts, length)[first_tokens]
    return WordRows(
        rows=_rows(tokenizer, tokens, starts, length),
        texts=owner,
        words=words,
        windows=windows,
        positions=1 + first_tokens - starts[windows],  # after [CLS]
    )


def _words(tokenizer: Tokenizer, tokens: TokenizedTexts) -> tuple[np.ndarray, TextWords]:
    """Return the first token of each word, int64 [words], and the words."""
    continues = np.array([entry.startswith(CONTINUATION) for entry in tokenizer.vocab])
    begins = ~continues[tokens.ids]
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(begins))[: len(first)] - 1
    words = TextWords(
        offsets=offsets_of(begins)[tokens.offsets],
        starts=tokens.first_characters[first],
        ends=tokens.last_characters[last],
    )
    return first, words


def _windows_of_tokens(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the window in which each token has most context, the first of equals.

    The context is the number of tokens on the shorter side.

    Args:
        starts: int64 [windows], first token of each window, in the tokens of all texts end to end.
        lengths: int64 [windows], tokens of each window.

    Returns:
        int64 [tokens].
    """
    windows = np.repeat(np.arange(len(starts)), lengths)
    tokens = flat_ranges(starts, lengths)
    place = tokens - starts[windows]
    context = np.minimum(place, lengths[windows] - 1 - place)
    count = int((starts + lengths).max(initial=0))
    most = np.full(count, -1, np.int64)
    np.maximum.at(most, tokens, context)
    # Reversed, so that the first of equals is assigned last.
    chosen = np.flatnonzero(context == most[tokens])[::-1]
    window_of_token = np.zeros(count, np.int64)
    window_of_token[tokens[chosen]] = windows[chosen]
    return window_of_token


def _rows(
    tokenizer: Tokenizer, tokens: TokenizedTexts, starts: np.ndarray, lengths: np.ndarray
) -> EncodedRows:
    """Return the windows between [CLS] and [SEP]."""
    offsets = offsets_of(lengths + SPECIALS_OF_TEXT)
    ids = between_specials(tokens.ids[flat_ranges(starts, lengths)], offsets, tokenizer)
    return EncodedRows(ids=ids, offsets=offsets, second_starts=np.diff(offsets).astype(np.int32))


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaggingHost(HostTask):
    """The task around its graph; see `TaggingTask` for the fields."""

    declaration: ClassVar[ServedTaskDeclaration] = TAGGING

    labels: tuple[str, ...]
    scheme: str
    window_stride: int

    def word_rows(self, tokenizer: Tokenizer, texts: Sequence[str]) -> WordRows:
        return encode_words(
            tokenizer, texts, max_seq_length=self.max_seq_length, stride=self.window_stride
        )

    def targets(
        self, placed: PlacedRow, outputs: Outputs, predicted: Mapping[str, Any]
    ) -> list[Target]:
        # The first piece of each word has its tag.
        logits = outputs["logits"]
        words = placed.words_at(logits.shape)
        targets = []
        for entity in predicted["predicted_entities"]:
            weights = np.zeros_like(logits, np.float32)
            for number, word in enumerate(placed.words):
                places = np.argwhere(words == number)
                if word.begin < entity["end"] and word.end > entity["start"] and len(places):
                    window, place = places[0]
                    weights[window, place, logits[window, place].argmax()] = 1.0
            name = f"{entity.get('label', '')} {entity.get('text', '')}".strip()
            targets.append(Target(name=name, weights={"logits": weights}))
        return targets

    def encode(self, tokenizer: Tokenizer, columns: Mapping[str, Sequence[Any]]) -> HostRows:
        words = self.word_rows(tokenizer, columns["text"])
        return HostRows(sequences=words.rows, details=words)

    def reduce(
        self, rows: HostRows, chosen: np.ndarray, outputs: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Return the most likely tag of each token, int32, and its probability.

        Both are [n, max_seq_length].
        """
        kept = outputs["logits"][:, : self.max_seq_length]
        shape = (len(kept), self.max_seq_length)
        above = kept - kept.max(axis=-1, keepdims=True)
        tags = np.zeros(shape, np.int32)
        tags[:, : kept.shape[1]] = kept.argmax(axis=-1)
        # The most likely tag's logit is 0 here, so its softmax is 1 over the sum.
        probabilities = np.zeros(shape, np.float32)
        probabilities[:, : kept.shape[1]] = 1.0 / np.exp(above).sum(axis=-1)
        return {"tags": tags, "probabilities": probabilities}

    def predict(
        self, rows: HostRows, columns: Mapping[str, Sequence[Any]], reduced: dict[str, np.ndarray]
    ) -> dict[str, Any]:
        words: WordRows = rows.details
        place = words.windows, words.positions
        tagged = TaggedWords(
            words=words.words,
            tags=np.array(self.labels, object)[reduced["tags"][place]].tolist(),
            scores=reduced["probabilities"][place],
        )
        joined = joined_words(columns["text"], tagged, self.scheme)
        return prediction_columns(columns["text"], joined, self.scheme)


def prediction_columns(texts: Sequence[str], words: TaggedWords, scheme: str) -> dict[str, Any]:
    """Return entities, words with their tags, and the mean score of the words of each text.

    Entities have `start` and `end` (characters), `label`, `text` and `score`, the mean score of
    their words. Words have `start`, `end`, `tag` and `score`. The mean score of no words is 0.

    Args:
        texts: texts [rows].
        words: their words with predicted tags.
        scheme: scheme of the tags.
    """
    numbers: dict[str, int] = {}
    spans = words.spans(scheme, numbers)
    offsets = words.words.offsets
    sums = np.concatenate([[0.0], np.cumsum(words.scores, dtype=np.float64)])
    counts = np.diff(offsets)
    totals = sums[offsets[1:]] - sums[offsets[:-1]]
    tags = words.listed()
    scores = iter(words.scores.tolist())
    for word in itertools.chain.from_iterable(tags):
        word["score"] = round(next(scores), PROBABILITY_DIGITS)
    return {
        "predicted_entities": _entities(texts, words.words, spans, list(numbers), sums),
        "predicted_tags": tags,
        "mean_score": (totals / np.maximum(counts, 1)).astype(np.float32),
    }


def span_rows(words: TextWords, spans: Spans, names: Sequence[str]) -> list[list[dict[str, Any]]]:
    """Return the entities of each text with their characters and labels.

    Args:
        words: words of the texts.
        spans: entities, in words.
        names: label of each kind of entity.
    """
    rows: list[list[dict[str, Any]]] = [[] for _ in range(len(words.offsets) - 1)]
    owners = np.searchsorted(words.offsets, spans.first, side="right") - 1
    columns = (owners, words.starts[spans.first], words.ends[spans.last - 1], spans.kinds)
    for owner, start, end, kind in zip(*(column.tolist() for column in columns), strict=True):
        rows[owner].append({"start": start, "end": end, "label": names[kind]})
    return rows


def _entities(
    texts: Sequence[str], words: TextWords, spans: Spans, names: Sequence[str], sums: np.ndarray
) -> list[list[dict[str, Any]]]:
    means = ((sums[spans.last] - sums[spans.first]) / (spans.last - spans.first)).tolist()
    rows = span_rows(words, spans, names)
    score = iter(means)
    for text, row in zip(texts, rows, strict=True):
        for entity in row:
            entity["text"] = text[entity["start"] : entity["end"]]
            entity["score"] = round(next(score), PROBABILITY_DIGITS)
    return rows


def columns_by_words(
    words: TextWords, texts: Sequence[str], predicted: Mapping[str, Iterable[Any]], scheme: str
) -> dict[str, Any]:
    """Turn predictions for the texts of rows of words into predictions for these words.

    Args:
        words: the words of the rows, joined by blanks to `texts`.
        texts: texts [rows].
        predicted: outputs for the texts by name.
        scheme: scheme of the tags.

    Returns:
        The columns of `prediction_columns` for the row's own words that have a token;
        `predicted_token_tags`, a tag for every word of a row; and the number of words without a
        token.
    """
    counts, tagged = given_words(words, texts, predicted_words(predicted))
    tags = tags_of_all(tagged, counts, scheme)
    bounds = itertools.pairwise(words.offsets.tolist())
    return {
        **prediction_columns(texts, tagged, scheme),
        "predicted_token_tags": [tags[begin:end] for begin, end in bounds],
        WORDS_WITHOUT_TOKENS: np.diff(words.offsets) - np.diff(tagged.words.offsets),
    }


def columns_of_rows(
    rows: Sequence[Sequence[str]],
    predicted: Mapping[str, Iterable[Any]],
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """Return `columns_by_words` of lists of words, see `WordsDeclaration.implementation`.

    Args:
        rows: words of each row.
        predicted: outputs for the words, joined by blanks, by name.
        settings: the model's `task.json`.
    """
    texts = [" ".join(row) for row in rows]
    return columns_by_words(TextWords.of_rows(rows), texts, predicted, settings["scheme"])
