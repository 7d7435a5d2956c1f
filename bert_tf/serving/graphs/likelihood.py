"""The pseudo-log-likelihood of texts under a masked language model, inside one graph."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import tensorflow as tf

from bert_tf.data.text.vocab_file import SPECIALS_OF_TEXT
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.serving.row_batches import BatchRows, TensorRanges, rows_of_ranges
from bert_tf.serving.signatures import EXCESS_TOKENS
from bert_tf.serving.text_module import MaskedLMModule

_MOST_NATS = 88.0  # e to this power is nearly the largest float32


class MaskedCopies(NamedTuple):
    """Texts with one token masked in each copy; `bert_tf.data.rows.masked_copies` in a graph.

    Attributes:
        rows: the copies, made a batch at a time.
        texts: int64 [copies], the text of each copy.
        positions: int32 [copies], place of the mask in the row.
        targets: int32 [copies], the masked token.
        counts: int64 [texts], number of scored tokens.
        excess: int64 [texts], number of tokens that do not fit into a sequence; a text with any has
            no copy.
    """

    rows: BatchRows
    texts: tf.Tensor
    positions: tf.Tensor
    targets: tf.Tensor
    counts: tf.Tensor
    excess: tf.Tensor


def masked_copies(
    tokens: tf.RaggedTensor, *, max_seq_length: int, tokenizer: WordPieceTokenizer
) -> MaskedCopies:
    """Make a copy for each token of the texts, ragged int32 [texts, (tokens)]."""
    lengths = tokens.row_lengths()
    excess = tf.maximum(lengths - (max_seq_length - SPECIALS_OF_TEXT), 0)
    counts = tf.where(excess > 0, tf.zeros_like(lengths), lengths)
    texts = tf.repeat(tf.range(tf.size(counts, tf.int64)), counts)
    places = tf.ragged.range(counts).flat_values
    starts = tf.gather(tokens.row_starts(), texts)
    ranges = TensorRanges(
        tokens.flat_values, starts=starts, lengths=tf.cast(tf.gather(counts, texts), tf.int32)
    )
    whole = rows_of_ranges([ranges], cls_id=tokenizer.cls_id, sep_id=tokenizer.sep_id)

    def masked(chosen: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
        word_ids, type_ids = whole.of(chosen)
        at = word_ids.row_starts() + 1 + tf.gather(places, chosen)
        masks = tf.fill(tf.shape(at), tf.constant(tokenizer.mask_id, word_ids.dtype))
        flat = tf.tensor_scatter_nd_update(word_ids.flat_values, at[:, None], masks)
        return word_ids.with_flat_values(flat), type_ids

    return MaskedCopies(
        rows=BatchRows(lengths=whole.lengths, of=masked),
        texts=texts,
        positions=tf.cast(places, tf.int32) + 1,
        targets=tf.gather(tokens.flat_values, starts + places),
        counts=counts,
        excess=excess,
    )


class LikelihoodModule(MaskedLMModule):
    """Computes the likelihoods of `text`, and of `text_pair` if rows have one.

    Outputs, all [n]: `predicted_log_likelihood` float32, the sum of the log-probabilities of the
    tokens, one masked at a time; `predicted_token_count` int32; `predicted_perplexity` float32, e
    to the mean negative log-probability. With `text_pair`, the same as `predicted_pair_…`, and
    `predicted_difference` float32, the first log-likelihood minus the second. `excess_tokens` int32
    counts the tokens that do not fit into a sequence; a text with any is not scored, and its token
    count is 0.

    Args:
        model: built `BertMaskedLM` with its weights, float32.
        tokenizer: its tokenizer.
        max_seq_length: tokens per sequence, [CLS] and [SEP] included.
        has_pair: whether rows have a second text.
    """

    input_names: ClassVar[tuple[str, ...]] = ("text", "text_pair")

    def __init__(
        self, model: Any, tokenizer: WordPieceTokenizer, *, max_seq_length: int, has_pair: bool
    ):
        super().__init__(model, tokenizer, max_seq_length)
        self._has_pair = has_pair

    def inputs(self) -> tuple[str, ...]:
        return self.input_names if self._has_pair else self.input_names[:1]

    def predict(self, texts: dict[str, tf.Tensor], batch_tokens: tf.Tensor) -> dict[str, tf.Tensor]:
        names = self.inputs()
        every_text = tf.concat([texts[name] for name in names], axis=0)
        copies = masked_copies(
            self.tokenizer.tokenize(every_text),
            max_seq_length=self.max_seq_length,
            tokenizer=self.tokenizer,
        )
        totals = tf.math.unsorted_segment_sum(
            self._log_probabilities(copies, batch_tokens), copies.texts, tf.size(every_text)
        )
        least_one = tf.cast(tf.maximum(copies.counts, 1), tf.float64)
        perplexities = tf.exp(tf.minimum(-totals / least_one, _MOST_NATS))
        shape = [len(names), -1]
        by_input = tf.reshape(totals, shape)
        counts = tf.reshape(tf.cast(copies.counts, tf.int32), shape)
        perplexities = tf.reshape(tf.cast(perplexities, tf.float32), shape)
        outputs = {}
        for number, prefix in enumerate(("predicted", "predicted_pair")[: len(names)]):
            outputs[f"{prefix}_log_likelihood"] = tf.cast(by_input[number], tf.float32)
            outputs[f"{prefix}_token_count"] = counts[number]
            outputs[f"{prefix}_perplexity"] = perplexities[number]
        if self._has_pair:
            outputs["predicted_difference"] = tf.cast(by_input[0] - by_input[1], tf.float32)
        excess = tf.reduce_sum(tf.reshape(copies.excess, shape), axis=0)
        outputs[EXCESS_TOKENS] = tf.cast(excess, tf.int32)
        return outputs

    def _log_probabilities(self, copies: MaskedCopies, batch_tokens: tf.Tensor) -> tf.Tensor:
        """Return the log-probability of each masked token, float64 [copies]."""

        def score(batch: dict[str, tf.Tensor], chosen: tf.Tensor) -> tuple[tf.Tensor]:
            positions = tf.gather(copies.positions, chosen)[:, None]
            logits = self.model({**batch, "masked_lm_positions": positions}, training=False)[:, 0]
            target_logits = tf.gather(logits, tf.gather(copies.targets, chosen), batch_dims=1)
            return (target_logits - tf.reduce_logsumexp(logits, axis=-1),)

        (scores,) = self.over_rows(score, copies.rows, batch_tokens, tf.TensorSpec([], tf.float32))
        return tf.cast(scores, tf.float64)
