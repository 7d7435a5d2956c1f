"""Arithmetic of a model's training steps."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from bert_tf.config.bert import BertConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelFlops:
    """Floating-point operations of a training step by the model's formulas (`flops`).

    Attributes:
        token_parameters: weights that every token is multiplied with; `example_parameters`: one
            token of every sequence; `prediction_parameters`: every masked token.
        attention_width: layers x hidden size.
        frozen_fraction: of the layers, without a backward pass, the first ones.
        read_parameters, read_attention_width: of `token_parameters` and `attention_width` those for
            tokens that a head reads only: the last block's but for keys and values. 0 where heads
            read all tokens.
    """

    token_parameters: int
    example_parameters: int
    prediction_parameters: int
    attention_width: int
    frozen_fraction: float = 0.0
    read_parameters: int = 0
    read_attention_width: int = 0

    @classmethod
    def of_encoder(
        cls, config: BertConfig, *, frozen_layers: int = 0, reads_all_tokens: bool = True
    ) -> ModelFlops:
        """The encoder with pooler and masked-LM head; other heads are a thousandth of it.

        `reads_all_tokens`: whether heads read all tokens, not the first and the masked ones.
        """
        hidden = config.hidden_size
        read = 0 if reads_all_tokens or frozen_layers == config.num_hidden_layers else hidden
        layer = 4 * hidden * hidden + 2 * hidden * config.intermediate_size
        return cls(
            token_parameters=config.num_hidden_layers * layer,
            example_parameters=hidden * hidden,
            prediction_parameters=hidden * (hidden + config.vocab_size),
            attention_width=config.num_hidden_layers * hidden,
            frozen_fraction=frozen_layers / config.num_hidden_layers,
            read_parameters=2 * read * (hidden + config.intermediate_size),
            read_attention_width=read,
        )

    def flops(
        self, *, tokens: Any, examples: Any, squared_lengths: Any, predictions: Any
    ) -> np.ndarray:
        """Operations of forward and backward pass, without padding and recomputation.

        6 operations a weight and token (a multiplication and an addition, forward once, backward
        twice; Kaplan et al. 2020, section 2.1), and 12 x layers x hidden for each two tokens that
        see each other, for attention's scores and sums (PaLM, Chowdhery et al. 2022, appendix B).
        Frozen layers have only the forward third of both. Arguments are one number per step,
        without padding: `squared_lengths` a sum of squares, `predictions` masked positions.
        """
        counts = (tokens, examples, squared_lengths, predictions)
        tokens, examples, squares, targets = (np.asarray(count, np.float64) for count in counts)
        heads = self.example_parameters * examples + self.prediction_parameters * targets
        layers = 6.0 * self.token_parameters * tokens + 12.0 * self.attention_width * squares
        # Tokens that no head reads; those that are read see as many others as the rest do.
        unread = np.maximum(tokens - examples - targets, 0.0)
        unread_squares = squares * unread / np.maximum(tokens, 1.0)
        unneeded = 6.0 * self.read_parameters * unread
        unneeded += 12.0 * self.read_attention_width * unread_squares
        return 6.0 * heads + (1.0 - 2.0 / 3.0 * self.frozen_fraction) * layers - unneeded
