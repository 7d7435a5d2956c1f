"""Floating-point operations of training steps."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from bert_tf.config.bert import BertConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelFlops:
    """Floating-point operations of a training step, by the formulas of `flops`.

    Attributes:
        token_parameters: weights that every token is multiplied with.
        example_parameters: weights that one token of every sequence is multiplied with.
        prediction_parameters: weights that every masked token is multiplied with.
        attention_width: layers x hidden size.
        frozen_fraction: fraction of the layers, from the first on, without a backward pass.
        read_parameters, read_attention_width: the part of `token_parameters` and `attention_width`
            that is only computed for tokens that a head reads: the last block except keys and
            values. 0 if heads read all tokens.
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
        """Count the encoder with pooler and masked-LM head.

        Other heads are left out: they need about a thousandth of the operations.

        Args:
            config: sizes.
            frozen_layers: blocks without a backward pass.
            reads_all_tokens: whether heads read all tokens, and not only the first and the masked
                ones.
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
        """Return the operations of forward and backward pass, without padding and recomputation.

        6 operations per weight and token (a multiplication and an addition, once forward and twice
        backward; Kaplan et al. 2020, section 2.1), and 12 x layers x hidden for each pair of tokens
        that attend to each other, for attention's scores and sums (PaLM, Chowdhery et al. 2022,
        appendix B). Frozen layers only have the forward third of both.

        Args:
            tokens: tokens without padding, one number per step.
            examples: sequences.
            squared_lengths: sum of the squares of the sequences' lengths.
            predictions: masked tokens.

        Returns:
            float64, one number per step.
        """
        tokens = np.asarray(tokens, np.float64)
        examples = np.asarray(examples, np.float64)
        squares = np.asarray(squared_lengths, np.float64)
        targets = np.asarray(predictions, np.float64)
        heads = self.example_parameters * examples + self.prediction_parameters * targets
        layers = 6.0 * self.token_parameters * tokens + 12.0 * self.attention_width * squares
        # Tokens that no head reads. It is assumed that they attend to as many tokens as the others.
        unread = np.maximum(tokens - examples - targets, 0.0)
        unread_squares = squares * unread / np.maximum(tokens, 1.0)
        unneeded = 6.0 * self.read_parameters * unread
        unneeded += 12.0 * self.read_attention_width * unread_squares
        trained = 1.0 - 2.0 / 3.0 * self.frozen_fraction  # the backward pass is two thirds
        return 6.0 * heads + trained * layers - unneeded
