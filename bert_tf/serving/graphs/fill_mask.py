"""The most likely tokens for every mask of a text, inside one graph."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import tensorflow as tf

from bert_tf.data.rows.candidate_words import WordGroup, group_words, most_rows
from bert_tf.data.text.vocab_file import CONTINUATION, SPECIAL_TOKENS, SPECIALS_OF_TEXT
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.serving.row_batches import BatchRows, TensorRanges, rows_of_ranges
from bert_tf.serving.signatures import (
    LOST_MASKS,
    MOST_CANDIDATE_BYTES,
    MOST_MASKS,
    PROBABILITY_DIGITS,
)
from bert_tf.serving.text_module import MaskedLMModule, json_text

_MASK = SPECIAL_TOKENS[-1]


class MaskedTexts(NamedTuple):
    """Texts cut at their masks, and their tokens.

    Only the first `MOST_MASKS` masks of a text are predicted.

    Attributes:
        parts: string [n, (masks + 1)], the text before, between and after the masks.
        tokens: int32 [n, (tokens)], all masks among them.
        is_predicted: bool [masks of all texts].
        mask_texts: int64 [predicted masks], the text of each, ascending.
        mask_positions: int64 [predicted masks], its position in the tokens of its text.
        lost_masks: int32 [n], the masks of each text that are not predicted.
    """

    parts: tf.RaggedTensor
    tokens: tf.RaggedTensor
    is_predicted: tf.Tensor
    mask_texts: tf.Tensor
    mask_positions: tf.Tensor
    lost_masks: tf.Tensor


def is_before_mask(parts: tf.RaggedTensor) -> tf.Tensor:
    """Whether a mask follows each part of a text, bool [parts of all texts]."""
    lasts = tf.gather(parts.row_limits() - 1, parts.value_rowids())
    return tf.range(tf.size(lasts, tf.int64)) != lasts


def split_at_masks(texts: tf.Tensor, tokenizer: WordPieceTokenizer) -> MaskedTexts:
    """Tokenize texts, string [n], and keep [MASK] apart, as HuggingFace's tokenizers do."""
    parts = tf.strings.split(texts, _MASK)
    is_mask = is_before_mask(parts)
    after = tf.RaggedTensor.from_row_lengths(
        tf.fill([tf.math.count_nonzero(is_mask)], tokenizer.mask_id), tf.cast(is_mask, tf.int64)
    )
    pieces = tf.concat([tokenizer.tokenize(parts.flat_values), after], axis=1)
    tokens = tf.RaggedTensor.from_row_splits(
        pieces.flat_values, tf.gather(pieces.row_splits, parts.row_splits)
    )
    masks = parts.row_lengths() - 1
    is_predicted = tf.ragged.range(masks).flat_values < MOST_MASKS
    mask_texts = tf.boolean_mask(tf.boolean_mask(parts.value_rowids(), is_mask), is_predicted)
    ends = tf.boolean_mask(tf.boolean_mask(pieces.row_limits(), is_mask), is_predicted)
    return MaskedTexts(
        parts=parts,
        tokens=tokens,
        is_predicted=is_predicted,
        mask_texts=mask_texts,
        mask_positions=ends - 1 - tf.gather(tokens.row_starts(), mask_texts),
        lost_masks=tf.cast(tf.maximum(masks - MOST_MASKS, 0), tf.int32),
    )


def mask_rows(
    masked: MaskedTexts, *, max_seq_length: int, tokenizer: WordPieceTokenizer
) -> tuple[BatchRows, tf.Tensor]:
    """Make a row for each predicted mask.

    A row has all tokens of its text if they fit, else the tokens around the mask.

    Returns:
        The rows, and the position of the mask in each, int32 [predicted masks].
    """
    capacity = max_seq_length - SPECIALS_OF_TEXT
    lengths = tf.gather(masked.tokens.row_lengths(), masked.mask_texts)
    begins = tf.minimum(masked.mask_positions - capacity // 2, lengths - capacity)
    begins = tf.maximum(begins, 0)
    around = TensorRanges(
        masked.tokens.flat_values,
        starts=tf.gather(masked.tokens.row_starts(), masked.mask_texts) + begins,
        lengths=tf.cast(tf.minimum(lengths, capacity), tf.int32),
    )
    rows = rows_of_ranges([around], cls_id=tokenizer.cls_id, sep_id=tokenizer.sep_id)
    return rows, tf.cast(masked.mask_positions - begins, tf.int32) + 1


def word_rows(
    masked: MaskedTexts, width: int, *, max_seq_length: int, tokenizer: WordPieceTokenizer
) -> tuple[BatchRows, tf.Tensor]:
    """Make a row for each predicted mask, which is replaced by `width` masks.

    Args:
        masked: the texts.
        width: number of masks, from 1.
        max_seq_length: tokens of a row, special tokens included.
        tokenizer: has the ids of the special tokens.

    Returns:
        The rows, and the position of the first of the `width` masks in each, int32 [predicted
        masks].
    """
    capacity = max_seq_length - SPECIALS_OF_TEXT
    starts = tf.gather(masked.tokens.row_starts(), masked.mask_texts)
    positions = masked.mask_positions
    lengths = tf.gather(masked.tokens.row_lengths(), masked.mask_texts) + width - 1
    begins = tf.minimum(positions - (capacity - width + 1) // 2, lengths - capacity)
    begins = tf.maximum(begins, 0)
    before = positions - begins
    after = tf.minimum(lengths, capacity) - before - width
    flat = masked.tokens.flat_values
    masks = TensorRanges(
        tf.fill([width], tf.constant(tokenizer.mask_id, flat.dtype)),
        starts=tf.zeros_like(starts),
        lengths=tf.cast(tf.fill(tf.shape(starts), width), tf.int32),
    )
    parts = [
        TensorRanges(flat, starts=starts + begins, lengths=tf.cast(before, tf.int32)),
        masks,
        TensorRanges(flat, starts=starts + positions + 1, lengths=tf.cast(after, tf.int32)),
    ]
    rows = rows_of_ranges(parts, cls_id=tokenizer.cls_id, sep_id=tokenizer.sep_id)
    return rows, tf.cast(before, tf.int32) + 1


class CandidateText(tf.Module):
    """Puts tokens into masks: `walk [MASK]` with `##ing`, which continues a word, is `walking`.

    Args:
        vocab: entries of the vocabulary, or words.
        are_words: whether `vocab` holds words, which never continue the word before.
    """

    def __init__(self, vocab: Sequence[str], *, are_words: bool = False):
        super().__init__(name="candidate_text")
        self._entries = tf.constant([_quoted(entry) for entry in vocab])
        continues = [
            not are_words and entry.startswith(CONTINUATION) and entry != CONTINUATION
            for entry in vocab
        ]
        self._continues = tf.constant(continues)
        words = [
            entry.removeprefix(CONTINUATION) if is_continued else entry
            for entry, is_continued in zip(vocab, continues, strict=True)
        ]
        self._words = tf.constant(words)
        self._escaped_words = tf.constant([_quoted(word)[1:-1] for word in words])

    def filled(self, masked: MaskedTexts, tokens: tf.Tensor) -> tf.Tensor:
        """Put `tokens`, int32 [predicted masks], into the texts; string [n]."""
        flat = masked.parts.flat_values
        before = tf.where(is_before_mask(masked.parts))
        predicted = tf.boolean_mask(before, masked.is_predicted)
        lost = tf.boolean_mask(before, ~masked.is_predicted)
        parts = tf.gather_nd(flat, predicted)
        kept = tf.where(tf.gather(self._continues, tokens), _without_blanks_at_end(parts), parts)
        joined = tf.strings.join([kept, tf.gather(self._words, tokens)])
        flat = tf.tensor_scatter_nd_update(flat, predicted, joined)
        unchanged = tf.strings.join([tf.gather_nd(flat, lost), _MASK])
        flat = tf.tensor_scatter_nd_update(flat, lost, unchanged)
        return tf.strings.reduce_join(masked.parts.with_flat_values(flat), axis=1)

    def as_json(
        self, texts: tf.Tensor, masked: MaskedTexts, tokens: tf.Tensor, scores: tf.Tensor
    ) -> tf.Tensor:
        """Write the candidates of each text as JSON, string [n], see `MaskFiller`.

        Args:
            texts: string [n].
            masked: the texts cut at their masks.
            tokens, scores: int32 and float32 [predicted masks, candidates].
        """
        filled = self._filled_as_json(texts, masked, tokens)
        objects = tf.strings.join(
            [
                '{"token": ',
                tf.gather(self._entries, tokens),
                ', "score": ',
                tf.strings.as_string(scores, precision=PROBABILITY_DIGITS),
                ', "text": ',
                filled,
                "}",
            ]
        )
        lists = tf.strings.reduce_join(objects, axis=1, separator=", ")
        of_masks = tf.tensor_scatter_nd_update(
            tf.fill(tf.shape(masked.is_predicted), "[]"),
            tf.where(masked.is_predicted),
            tf.strings.join(["[", lists, "]"]),
        )
        of_texts = tf.RaggedTensor.from_row_lengths(of_masks, masked.parts.row_lengths() - 1)
        joined = tf.strings.reduce_join(of_texts, axis=1, separator=", ")
        return tf.strings.join(["[", joined, "]"])

    def _filled_as_json(
        self, texts: tf.Tensor, masked: MaskedTexts, tokens: tf.Tensor
    ) -> tf.Tensor:
        """Return the text with each candidate as JSON, string [predicted masks, candidates].

        Each is a copy of its text, so the memory for a text is the product of its length, masks and
        candidates. If that exceeds MOST_CANDIDATE_BYTES, its entries are `null`.
        """
        candidates = tf.shape(tokens)[1]
        copies = tf.math.unsorted_segment_sum(
            tf.fill(tf.shape(masked.mask_texts), candidates), masked.mask_texts, tf.size(texts)
        )
        sizes = tf.cast(tf.strings.length(texts), tf.int64) * tf.cast(copies, tf.int64)
        has_text = tf.gather(sizes <= MOST_CANDIDATE_BYTES, masked.mask_texts)
        tokens_with_text = tf.boolean_mask(tokens, has_text)
        before, after = _around_masks(texts, masked, has_text)

        def for_candidates(parts: tf.Tensor) -> tf.Tensor:
            return tf.repeat(json_text(parts)[:, None], candidates, axis=1)

        filled = tf.strings.join(
            [
                '"',
                tf.where(
                    tf.gather(self._continues, tokens_with_text),
                    for_candidates(_without_blanks_at_end(before)),
                    for_candidates(before),
                ),
                tf.gather(self._escaped_words, tokens_with_text),
                for_candidates(after),
                '"',
            ]
        )
        return tf.tensor_scatter_nd_update(
            tf.fill(tf.shape(tokens), "null"), tf.where(has_text), filled
        )


def _without_blanks_at_end(texts: tf.Tensor) -> tf.Tensor:
    return tf.strings.regex_replace(texts, r"\s+$", "")


def _around_masks(
    texts: tf.Tensor, masked: MaskedTexts, is_chosen: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the text before and after each chosen mask, string [chosen masks] each.

    Other masks of the text stay in it as [MASK].

    Args:
        texts: string [n].
        masked: the texts cut at their masks.
        is_chosen: bool [predicted masks].
    """
    parts = masked.parts
    lengths = tf.strings.length(parts.flat_values) + len(_MASK)
    ends = tf.cumsum(lengths)
    starts = tf.gather(ends - lengths, parts.row_starts())
    offsets = ends - tf.gather(starts, parts.value_rowids())  # of the end of the mask
    offsets = tf.boolean_mask(offsets, is_before_mask(parts))
    offsets = tf.boolean_mask(tf.boolean_mask(offsets, masked.is_predicted), is_chosen)
    texts = tf.gather(texts, tf.boolean_mask(masked.mask_texts, is_chosen))
    before = tf.strings.substr(texts, tf.zeros_like(offsets), offsets - len(_MASK))
    return before, tf.strings.substr(texts, offsets, tf.strings.length(texts))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


class MaskFiller(MaskedLMModule):
    """Predicts candidates for each mask of `text`.

    Outputs, all [n]: `predicted_text` string, the text with the best token at every mask;
    `predicted_score` float32, the product of those tokens' probabilities; `predicted_tokens`
    string, JSON: a list of masks in their order, each a list of `top_k` objects with `token`,
    `score` and `text`, which has that token at that mask. Each mask is predicted while the others
    are masked, as HuggingFace's pipeline does; probabilities are over the whole vocabulary.

    For texts longer than a sequence, the tokens around each mask are read.

    The cost of a text is bounded. Masks beyond `MOST_MASKS` are not predicted: they stay in
    `predicted_text`, have an empty list, and are counted in `lost_masks` (int32). `text` is null
    for all candidates of a row whose texts would take more than `MOST_CANDIDATE_BYTES`.

    With `candidates`, these words are compared instead of the entries of the vocabulary: the score
    of a word is the product of the probabilities of its tokens in a text with as many masks.

    Args:
        model: built `BertMaskedLM` with its weights, float32.
        tokenizer: its tokenizer.
        max_seq_length: tokens per sequence, [CLS] and [SEP] included.
        top_k: number of candidates for each mask.
        candidates: words to choose from; () for the vocabulary.
    """

    input_names: ClassVar[tuple[str, ...]] = ("text",)

    def __init__(
        self,
        model: Any,
        tokenizer: WordPieceTokenizer,
        *,
        max_seq_length: int,
        top_k: int,
        candidates: Sequence[str] = (),
    ):
        super().__init__(model, tokenizer, max_seq_length)
        self._top_k = top_k
        # A tuple, since a module tracks the items of a list.
        self._groups = tuple(group_words(candidates, tokenizer)) if candidates else ()
        self._text = CandidateText(candidates or tokenizer.vocab, are_words=bool(candidates))

    def predict(self, texts: dict[str, tf.Tensor], batch_tokens: tf.Tensor) -> dict[str, tf.Tensor]:
        text = texts["text"]
        masked = split_at_masks(text, self.tokenizer)
        find = self._words if self._groups else self._candidates
        tokens, scores = find(masked, batch_tokens)
        rows = tf.size(text)
        best = tf.math.unsorted_segment_prod(scores[:, 0], masked.mask_texts, rows)
        return {
            "predicted_text": self._text.filled(masked, tokens[:, 0]),
            "predicted_score": best,
            "predicted_tokens": self._text.as_json(text, masked, tokens, scores),
            LOST_MASKS: masked.lost_masks,
        }

    def _words(self, masked: MaskedTexts, batch_tokens: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Return numbers and scores of the best words of each predicted mask.

        Returns:
            Numbers in all groups, int32, and scores, float32: [predicted masks, top_k] each.
        """
        words_of_groups = [self._words_of(group, masked, batch_tokens) for group in self._groups]
        numbers = tf.concat([numbers for numbers, _ in words_of_groups], axis=1)
        all_scores = tf.concat([scores for _, scores in words_of_groups], axis=1)
        scores, places = tf.math.top_k(all_scores, self._top_k)
        return tf.gather(numbers, places, batch_dims=1), scores

    def _words_of(
        self, group: WordGroup, masked: MaskedTexts, batch_tokens: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Return the best words of a group, at most `top_k`, as `_words` does."""
        rows, places = word_rows(
            masked, group.length, max_seq_length=self.max_seq_length, tokenizer=self.tokenizer
        )
        number = min(self._top_k, len(group.numbers))

        def score(batch: dict[str, tf.Tensor], chosen: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            positions = tf.gather(places, chosen)[:, None] + tf.range(group.length)
            logits = self.model({**batch, "masked_lm_positions": positions}, training=False)
            norms = tf.reduce_logsumexp(logits, axis=-1)
            totals = tf.add_n(
                [
                    tf.gather(logits[:, place], group.tokens[:, place], axis=1)
                    - norms[:, place, None]
                    for place in range(group.length)
                ]
            )
            scores, best = tf.math.top_k(tf.exp(totals), number)
            return tf.gather(tf.constant(group.numbers), best), scores

        numbers, scores = self.over_rows(
            score,
            rows,
            batch_tokens,
            tf.TensorSpec([number], tf.int32),
            tf.TensorSpec([number], tf.float32),
            max_rows=most_rows(group.length, self.model.config.vocab_size),
        )
        return numbers, scores

    def _candidates(
        self, masked: MaskedTexts, batch_tokens: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Return ids and scores of the best tokens of each predicted mask.

        Returns:
            Ids, int32, and probabilities, float32: [predicted masks, top_k] each.
        """
        rows, places = mask_rows(
            masked, max_seq_length=self.max_seq_length, tokenizer=self.tokenizer
        )

        def score(batch: dict[str, tf.Tensor], chosen: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            positions = tf.gather(places, chosen)[:, None]
            logits = self.model({**batch, "masked_lm_positions": positions}, training=False)
            scores, tokens = tf.math.top_k(tf.nn.softmax(logits[:, 0], axis=-1), self._top_k)
            return tokens, scores

        tokens, scores = self.over_rows(
            score,
            rows,
            batch_tokens,
            tf.TensorSpec([self._top_k], tf.int32),
            tf.TensorSpec([self._top_k], tf.float32),
        )
        return tokens, scores
