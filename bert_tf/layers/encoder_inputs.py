"""Inputs of the encoder."""

from __future__ import annotations

import dataclasses
from typing import Any

from keras import ops

from bert_tf.layers.self_attention import attention_bias


@dataclasses.dataclass(frozen=True, kw_only=True)
class EncoderInputs:
    """A batch of token ids, and which outputs to compute.

    Attributes:
        input_word_ids: int32 [batch, length].
        input_type_ids: int32 [batch, length], the segment of every token; None for all 0.
        attention_mask: int or bool, true for tokens that may be attended to: [batch, length], or
            [batch, query, key] such as the block-diagonal mask of packed texts; None for all.
        position_ids: int32 [batch, length]; None for 0, 1, 2 … in every row.
        pooled_positions: int32 [batch, texts], first token of each of several texts in a row; None
            for one text per row.
        dropout_key: int32 [2]; None for no dropout.
        output_hidden_states: whether to return the output of every layer; not together with
            `read_positions` or `pooled_only`.
        read_positions: int32 [batch, number], the tokens of `sequence_output`; None for all.
        pooled_only: whether to return only `pooled_output`.
    """

    input_word_ids: Any
    input_type_ids: Any | None = None
    attention_mask: Any | None = None
    position_ids: Any | None = None
    pooled_positions: Any | None = None
    dropout_key: Any | None = None
    output_hidden_states: bool = False
    read_positions: Any | None = None
    pooled_only: bool = False

    @property
    def is_padded(self) -> bool:
        """Whether padding is masked, row by row."""
        return self.attention_mask is not None and len(self.attention_mask.shape) == 2

    def attention_bias(self) -> Any | None:
        """Return the bias of attention scores; None without a mask."""
        return None if self.attention_mask is None else attention_bias(self.attention_mask)

    def computed_positions(self, *, has_pooler: bool) -> Any | None:
        """Return the tokens that the last block computes, pooled ones first.

        int32 [batch, number]; None for all.
        """
        if self.read_positions is None and not self.pooled_only:
            return None
        positions = [] if self.pooled_only else [ops.cast(self.read_positions, "int32")]
        if has_pooler:
            pooled = self.pooled_positions
            if pooled is None:
                pooled = ops.zeros((ops.shape(self.input_word_ids)[0], 1), "int32")
            positions.insert(0, ops.cast(pooled, "int32"))
        return ops.concatenate(positions, axis=1)
