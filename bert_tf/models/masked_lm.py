"""Prediction of masked tokens alone."""

from __future__ import annotations

from typing import Any

import keras

from bert_tf.config.bert import BertConfig
from bert_tf.layers.masked_lm_head import MaskedLMHead
from bert_tf.models.bert_model import BertModel
from bert_tf.models.encoder import BertEncoder


@keras.saving.register_keras_serializable(package="bert_tf")
class BertMaskedLM(BertModel):
    """The masked-LM head on the encoder, without a pooler (Devlin et al. 2019, section 3.1).

    As HuggingFace's `BertForMaskedLM`.
    """

    huggingface_class = "BertForMaskedLM"
    reads_all_tokens = False

    def __init__(self, config: BertConfig, **kwargs: Any):
        super().__init__(config, **kwargs)
        policy = self.dtype_policy
        self.encoder = BertEncoder(config, has_pooler=False, dtype=policy, name="encoder")
        self.masked_lm = MaskedLMHead(config, dtype=policy, name="masked_lm")

    def build(self, input_shape: Any = None) -> None:
        self.encoder.build_weights()
        self.masked_lm.build(None)
        self.built = True

    def call(
        self,
        inputs: dict[str, Any],
        training: bool | None = False,
        dropout_key: Any | None = None,
    ) -> Any:
        """Scores every token of the vocabulary at the masked positions.

        Args:
            inputs: `input_word_ids`, `input_mask`, `input_type_ids`: int [batch, length];
                `masked_lm_positions`: int [batch, predictions]; optionally `position_ids`. Other
                keys are ignored.
            training: whether dropout is on.
            dropout_key: int32[2] that decides the dropout masks; None draws one.

        Returns:
            float32 logits [batch, predictions, vocab].
        """
        encoded = self.encoder.encode_inputs(
            inputs,
            training=training,
            dropout_key=dropout_key,
            read_positions=inputs["masked_lm_positions"],
        )
        return self.masked_lm(encoded["sequence_output"], self.encoder.embeddings.word_embeddings)
