"""The likeliest tokens for every mask of a text, inside one graph."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import tensorflow as tf

from bert_tf.data.text.vocab_file import CONTINUATION, SPECIAL_TOKENS
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.serving.signatures import PROBABILITY_DIGITS
from bert_tf.serving.text_module import TextModule, json_text

_MASK = SPECIAL_TOKENS[-1]


class MaskedTexts(NamedTuple):
    """Texts cut at their masks, and their tokens."""

    parts: tf.RaggedTensor  # string [n, (masks + 1)], the text before, between and after the masks
    tokens: tf.RaggedTensor  # int32 [n, (tokens)], the masks among them
    mask_rows: tf.Tensor  # int64 [masks], the text of each mask, ascending
    mask_positions: tf.Tensor  # int64 [masks], its position in the tokens of its text


def is_before_mask(parts: tf.RaggedTensor) -> tf.Tensor:
    """Whether a mask follows each part of a text, bool [parts of all texts]."""
    lasts = tf.gather(parts.row_limits() - 1, parts.value_rowids())
    return tf.range(tf.size(lasts, tf.int64)) != lasts


def split_at_masks(texts: tf.Tensor, tokenizer: WordPieceTokenizer) -> MaskedTexts:
    """Tokenizes texts, string [n], and keeps [MASK] apart, as HuggingFace's tokenizers do."""
    parts = tf.strings.split(texts, _MASK)
    is_mask = is_before_mask(parts)
    after = tf.RaggedTensor.from_row_lengths(
        tf.fill([tf.math.count_nonzero(is_mask)], tokenizer.mask_id), tf.cast(is_mask, tf.int64)
    )
    pieces = tf.concat([tokenizer.tokenize(parts.flat_values), after], axis=1)
    tokens = tf.RaggedTensor.from_row_splits(
        pieces.flat_values, tf.gather(pieces.row_splits, parts.row_splits)
    )
    mask_rows = tf.boolean_mask(parts.value_rowids(), is_mask)
    ends = tf.boolean_mask(pieces.row_limits(), is_mask)
    positions = ends - 1 - tf.gather(tokens.row_starts(), mask_rows)
    return MaskedTexts(parts, tokens, mask_rows, positions)


def mask_sequences(
    masked: MaskedTexts, *, max_seq_length: int, tokenizer: WordPieceTokenizer
) -> tuple[tf.RaggedTensor, tf.Tensor]:
    """Makes a sequence for each mask: all tokens of its text if they fit, else those around it.

    Returns word ids, ragged int32 [masks, (tokens)], and the mask's position, int32 [masks].
    """
    capacity = max_seq_length - 2
    lengths = tf.gather(masked.tokens.row_lengths(), masked.mask_rows)
    begins = tf.minimum(masked.mask_positions - capacity // 2, lengths - capacity)
    begins = tf.maximum(begins, 0)
    starts = tf.gather(masked.tokens.row_starts(), masked.mask_rows) + begins
    kept = tf.gather(
        masked.tokens.flat_values, tf.ragged.range(starts, starts + tf.minimum(lengths, capacity))
    )
    ends = tf.ones_like(lengths, tf.int32)[:, None]
    word_ids = tf.concat([ends * tokenizer.cls_id, kept, ends * tokenizer.sep_id], axis=1)
    return word_ids, tf.cast(masked.mask_positions - begins, tf.int32) + 1


class CandidateText(tf.Module):
    """Puts tokens into masks: `walk [MASK]` with `##ing`, which continues a word, is `walking`."""

    def __init__(self, vocab: Sequence[str]):
        super().__init__(name="candidate_text")
        self._entries = tf.constant([_quoted(entry) for entry in vocab])
        continues = [entry.startswith(CONTINUATION) and entry != CONTINUATION for entry in vocab]
        self._continues = tf.constant(continues)
        self._words = tf.constant(
            [
                entry.removeprefix(CONTINUATION) if is_continued else entry
                for entry, is_continued in zip(vocab, continues, strict=True)
            ]
        )

    def filled(self, parts: tf.RaggedTensor, tokens: tf.Tensor) -> tf.Tensor:
        """Puts `tokens`, int32 [masks of all texts], between the parts of the texts; string [n]."""
        flat = parts.flat_values
        masks = tf.where(is_before_mask(parts))
        joined = self._joined(tf.gather_nd(flat, masks), tokens)
        return tf.strings.reduce_join(
            parts.with_flat_values(tf.tensor_scatter_nd_update(flat, masks, joined)), axis=1
        )

    def as_json(
        self, texts: tf.Tensor, parts: tf.RaggedTensor, tokens: tf.Tensor, scores: tf.Tensor
    ) -> tf.Tensor:
        """JSON per text, see `MaskFiller`; tokens, scores: [masks of all texts, candidates]."""
        before, after = _around_masks(texts, parts)
        candidates = tf.shape(tokens)[1]
        filled = self._joined(tf.repeat(before[:, None], candidates, axis=1), tokens)
        objects = tf.strings.join(
            [
                '{"token": ',
                tf.gather(self._entries, tokens),
                ', "score": ',
                tf.strings.as_string(scores, precision=PROBABILITY_DIGITS),
                ', "text": "',
                json_text(tf.strings.join([filled, tf.repeat(after[:, None], candidates, axis=1)])),
                '"}',
            ]
        )
        lists = tf.strings.reduce_join(objects, axis=1, separator=", ")
        of_texts = tf.RaggedTensor.from_row_lengths(
            tf.strings.join(["[", lists, "]"]), parts.row_lengths() - 1
        )
        joined = tf.strings.reduce_join(of_texts, axis=1, separator=", ")
        return tf.strings.join(["[", joined, "]"])

    def _joined(self, before: tf.Tensor, tokens: tf.Tensor) -> tf.Tensor:
        unspaced = tf.strings.regex_replace(before, r"\s+$", "")
        kept = tf.where(tf.gather(self._continues, tokens), unspaced, before)
        return tf.strings.join([kept, tf.gather(self._words, tokens)])


def _around_masks(texts: tf.Tensor, parts: tf.RaggedTensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The text before and after each mask, other masks included, string [masks of all texts]."""
    lengths = tf.strings.length(parts.flat_values) + len(_MASK)
    ends = tf.cumsum(lengths)
    starts = tf.gather(ends - lengths, parts.row_starts())
    rows = parts.value_rowids()
    offsets = ends - tf.gather(starts, rows)  # of what follows the mask after each part
    is_mask = is_before_mask(parts)
    offsets = tf.boolean_mask(offsets, is_mask)
    texts = tf.gather(texts, tf.boolean_mask(rows, is_mask))
    before = tf.strings.substr(texts, tf.zeros_like(offsets), offsets - len(_MASK))
    return before, tf.strings.substr(texts, offsets, tf.strings.length(texts))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


class MaskFiller(TextModule):
    """From `text` to the candidates for each of its masks.

    Outputs, all [n]: `predicted_text` string, the text with the best token at every mask;
    `predicted_score` float32, the product of those tokens' probabilities; `predicted_tokens`
    string, JSON: a list of masks in their order, each a list of `top_k` objects with `token`,
    `score` and `text`, which has that token at that mask. Each mask is predicted while the others
    are masked, as HuggingFace's pipeline does; probabilities are over the whole vocabulary.

    Longer texts than a sequence are read around each mask.

    Args:
        model: built `BertMaskedLM` with its weights, float32.
        max_seq_length: tokens per sequence, [CLS] and [SEP] included.
    """

    input_names: ClassVar[tuple[str, ...]] = ("text",)

    def __init__(
        self, model: Any, tokenizer: WordPieceTokenizer, *, max_seq_length: int, top_k: int
    ):
        super().__init__(model, tokenizer, max_seq_length)
        self._top_k = top_k
        self._text = CandidateText(tokenizer.vocab)

    def predict(self, texts: dict[str, tf.Tensor], batch_tokens: tf.Tensor) -> dict[str, tf.Tensor]:
        text = texts["text"]
        masked = split_at_masks(text, self.tokenizer)
        tokens, scores = self._candidates(masked, batch_tokens)
        rows = tf.size(text)
        best = tf.math.unsorted_segment_prod(scores[:, 0], masked.mask_rows, rows)
        return {
            "predicted_text": self._text.filled(masked.parts, tokens[:, 0]),
            "predicted_score": best,
            "predicted_tokens": self._text.as_json(text, masked.parts, tokens, scores),
        }

    def head_outputs(self, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        shape = tf.shape(batch["input_word_ids"])
        positions = tf.broadcast_to(tf.range(shape[1]), shape)
        return {"logits": self.model({**batch, "masked_lm_positions": positions}, training=False)}

    def _candidates(
        self, masked: MaskedTexts, batch_tokens: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Ids, int32, and probabilities, float32, of each mask's best tokens: [masks, top_k]."""
        word_ids, places = mask_sequences(
            masked, max_seq_length=self.max_seq_length, tokenizer=self.tokenizer
        )

        def score(batch: dict[str, tf.Tensor], chosen: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            positions = tf.gather(places, chosen)[:, None]
            logits = self.model({**batch, "masked_lm_positions": positions}, training=False)
            scores, tokens = tf.math.top_k(tf.nn.softmax(logits[:, 0], axis=-1), self._top_k)
            return tokens, scores

        tokens, scores = self.over_rows(
            score,
            (word_ids, tf.zeros_like(word_ids)),
            batch_tokens,
            tf.TensorSpec([self._top_k], tf.int32),
            tf.TensorSpec([self._top_k], tf.float32),
        )
        return tokens, scores
