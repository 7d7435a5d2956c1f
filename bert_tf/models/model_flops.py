"""How much arithmetic a model needs."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from bert_tf.config.bert import BertConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelFlops:
    """Floating-point operations of a training step by the model's formulas (`flops`).

    Attributes:
        token_parameters: weights that every token is multiplied with.
        example_parameters: weights that one token of every sequence is multiplied with.
        prediction_parameters: weights that every masked token is multiplied with.
        attention_width: layers x hidden size.
        frozen_fraction: of the layers, that of the first ones that are not trained: they have no
            backward pass.
        read_parameters: of `token_parameters` those that only a token is multiplied with that a
            head reads: the last block's but for keys and values. 0 where heads read all tokens.
        read_attention_width: of `attention_width` that of such a block.
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
        """The encoder with its pooler, and the masked-LM head.

        Other heads, which are a thousandth of it, are left out.

        Args:
            config: shape of the encoder.
            frozen_layers: how many of its first layers are not trained.
            reads_all_tokens: whether heads read all tokens, not the first and the masked ones.
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
        """Operations of forward and backward pass, without what padding and recomputing cost.

        6 operations a weight and token (a multiplication and an addition, forward once, backward
        twice; Kaplan et al. 2020, section 2.1), and 12 x layers x hidden for each two tokens that
        see each other, for attention's scores and sums (PaLM, Chowdhery et al. 2022, appendix B). A
        layer that is not trained has the forward third of both alone.

        Args:
            tokens: tokens without padding, one number per step.
            examples: sequences, likewise.
            squared_lengths: sum of the squares of their lengths, likewise.
            predictions: masked positions, likewise; 0 without a masked-LM head.
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
