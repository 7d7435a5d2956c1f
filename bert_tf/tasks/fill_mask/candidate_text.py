"""Candidates for masks as texts and as JSON, inside a graph."""

from __future__ import annotations

import json
from collections.abc import Sequence

import tensorflow as tf

from bert_tf.data.text.vocab_file import CONTINUATION
from bert_tf.tasks.fill_mask.declaration import MASK
from bert_tf.tasks.fill_mask.masked_texts import is_before_mask

_SCORE_DIGITS = 6
# What may not be in a JSON string as it is: https://www.rfc-editor.org/rfc/rfc8259, section 7.
_ESCAPED = ("\\", '"', *(chr(code) for code in range(0x20)))


class CandidateText(tf.Module):
    """Puts tokens into the places of masks.

    A token that continues a word is joined to what precedes its mask: `walk [MASK]` with `##ing`
    becomes `walking`.

    Args:
        vocab: entries by id.
    """

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
        """Texts with a token at every mask.

        Args:
            parts: string [n, (masks + 1)].
            tokens: int32 [masks of all texts].

        Returns:
            string [n].
        """
        flat = parts.flat_values
        masks = tf.where(is_before_mask(parts))
        joined = self._joined(tf.gather_nd(flat, masks), tokens)
        return tf.strings.reduce_join(
            parts.with_flat_values(tf.tensor_scatter_nd_update(flat, masks, joined)), axis=1
        )

    def as_json(
        self, texts: tf.Tensor, parts: tf.RaggedTensor, tokens: tf.Tensor, scores: tf.Tensor
    ) -> tf.Tensor:
        """A JSON list of masks for each text, see `MaskFiller`.

        Args:
            texts: string [n].
            parts: of each text, string [n, (masks + 1)].
            tokens: int32 [masks of all texts, candidates].
            scores: float32, likewise.

        Returns:
            string [n].
        """
        before, after = _around_masks(texts, parts)
        candidates = tf.shape(tokens)[1]
        filled = self._joined(tf.repeat(before[:, None], candidates, axis=1), tokens)
        objects = tf.strings.join(
            [
                '{"token": ',
                tf.gather(self._entries, tokens),
                ', "score": ',
                tf.strings.as_string(scores, precision=_SCORE_DIGITS),
                ', "text": "',
                escaped(tf.strings.join([filled, tf.repeat(after[:, None], candidates, axis=1)])),
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
        """Texts with a token after them, string of the shape of both arguments."""
        unspaced = tf.strings.regex_replace(before, r"\s+$", "")
        kept = tf.where(tf.gather(self._continues, tokens), unspaced, before)
        return tf.strings.join([kept, tf.gather(self._words, tokens)])


def escaped(texts: tf.Tensor) -> tf.Tensor:
    """UTF-8 texts as they are inside the quotes of a JSON string."""
    for character in _ESCAPED:
        pattern = f"\\x{{{ord(character):x}}}"
        rewrite = _quoted(character)[1:-1].replace("\\", "\\\\")
        texts = tf.strings.regex_replace(texts, pattern, rewrite)
    return texts


def _around_masks(texts: tf.Tensor, parts: tf.RaggedTensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The text before and after each mask, other masks included, string [masks of all texts]."""
    lengths = tf.strings.length(parts.flat_values) + len(MASK)
    ends = tf.cumsum(lengths)
    starts = tf.gather(ends - lengths, parts.row_starts())
    rows = parts.value_rowids()
    offsets = ends - tf.gather(starts, rows)  # of what follows the mask after each part
    is_mask = is_before_mask(parts)
    offsets = tf.boolean_mask(offsets, is_mask)
    texts = tf.gather(texts, tf.boolean_mask(rows, is_mask))
    before = tf.strings.substr(texts, tf.zeros_like(offsets), offsets - len(MASK))
    return before, tf.strings.substr(texts, offsets, tf.strings.length(texts))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
