"""The pretraining model: masked-LM and next-sentence heads on the encoder."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from bert_tf.config.bert import BertConfig
from bert_tf.layers.masked_lm_head import MaskedLMHead
from bert_tf.layers.projection import Projection
from bert_tf.models.bert_model import BertModel
from bert_tf.models.encoder import BertEncoder


@keras.saving.register_keras_serializable(package="bert_tf")
class BertPretrainingModel(BertModel):
    """Predicts masked tokens and whether the second segment follows the first.

    The two tasks of Devlin et al. 2019, section 3.1.
    """

    huggingface_class = "BertForPreTraining"
    reads_all_tokens = False

    def __init__(self, config: BertConfig, **kwargs: Any):
        super().__init__(config, **kwargs)
        policy = self.dtype_policy
        self.encoder = BertEncoder(config, dtype=policy, name="encoder")
        self.masked_lm = MaskedLMHead(config, dtype=policy, name="masked_lm")
        self.next_sentence = Projection(
            2, initializer_range=config.initializer_range, dtype=policy, name="next_sentence"
        )

    def build(self, input_shape: Any = None) -> None:
        self.encoder.build_weights()
        self.masked_lm.build(None)
        self.next_sentence.build((None, self.config.hidden_size))
        self.built = True

    def call(
        self,
        inputs: dict[str, Any],
        training: bool | None = False,
        dropout_key: Any | None = None,
    ) -> dict[str, Any]:
        """Scores tokens at the masked positions, and the order of the segments.

        Args:
            inputs: `input_word_ids`, `input_mask`, `input_type_ids`: int [batch, length];
                `masked_lm_positions`: int [batch, predictions]; optionally `position_ids`, and for
                packed rows `sequence_ids` and `cls_positions`, see `BertEncoder.encode_inputs`.
                Other keys are ignored. `input_mask` may be [batch, length, length].
            training: whether dropout is on.
            dropout_key: int32[2] that decides the dropout masks; None draws one.

        Returns:
            `mlm_logits` float32 [batch, predictions, vocab] and `nsp_logits` float32 [batch, 2],
            for packed rows [batch, sequences, 2], where 1 means that the second segment is random.
        """
        encoded = self.encoder.encode_inputs(
            inputs,
            training=training,
            dropout_key=dropout_key,
            read_positions=inputs["masked_lm_positions"],
        )
        mlm_logits = self.masked_lm(
            encoded["sequence_output"], self.encoder.embeddings.word_embeddings
        )
        nsp_logits = ops.cast(self.next_sentence(encoded["pooled_output"]), "float32")
        return {"mlm_logits": mlm_logits, "nsp_logits": nsp_logits}
