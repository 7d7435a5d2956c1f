"""The BERT encoder."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import keras
import numpy as np
from keras import ops

from bert_tf.config.bert import BertConfig
from bert_tf.layers.dropout import require_dropout
from bert_tf.layers.embeddings import BertEmbeddings
from bert_tf.layers.encoder_inputs import EncoderInputs
from bert_tf.layers.implementation import implementation
from bert_tf.layers.projection import Projection
from bert_tf.layers.self_attention import gather_positions, same_sequence_mask
from bert_tf.layers.transformer_block import DROPOUT_STREAMS, TransformerBlock


class BertModel(keras.Model):
    """Base of the models: made from a `BertConfig`, built without data; `dtype` is a Keras policy.

    Attributes:
        huggingface_class: the class of HuggingFace's library with the same weights; a model whose
            head is new also registers with `bert_tf.weights.tensor_names.head_bindings`.
        reads_all_tokens: whether the head reads the last block's output of all tokens, not of the
            first and the masked ones only.
    """

    own_arguments: ClassVar[tuple[str, ...]] = ()
    huggingface_class: ClassVar[str]
    reads_all_tokens: ClassVar[bool] = True

    def __init__(self, config: BertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.config = config

    def build_weights(self) -> None:
        if not self.built:
            self.build(None)

    def get_config(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in self.own_arguments}
        policy = keras.dtype_policies.serialize(self.dtype_policy)
        return {"config": self.config.fields(), **own, "name": self.name, "dtype": policy}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Self:
        policy = config["dtype"]
        if isinstance(policy, dict):
            policy = keras.dtype_policies.deserialize(policy)
        return cls(**{**config, "config": BertConfig(**config["config"]), "dtype": policy})


@keras.saving.register_keras_serializable(package="bert_tf")
class BertEncoder(BertModel):
    """Embeddings, transformer blocks and, if `has_pooler`, a dense tanh layer on the first token
    (Devlin et al. 2019, section 3).
    """

    own_arguments = ("has_pooler",)
    huggingface_class = "BertModel"

    def __init__(self, config: BertConfig, *, has_pooler: bool = True, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.has_pooler = has_pooler
        self.seed_generator = keras.random.SeedGenerator()
        self.embeddings = BertEmbeddings(
            config, dropout_stream=0, dtype=self.dtype_policy, name="embeddings"
        )
        self.blocks = [
            TransformerBlock(
                config,
                first_dropout_stream=1 + DROPOUT_STREAMS * index,
                dtype=self.dtype_policy,
                name=f"block_{index}",
            )
            for index in range(config.num_hidden_layers)
        ]
        if has_pooler:
            self.pooler = Projection(
                config.hidden_size,
                initializer_range=config.initializer_range,
                activation_name="tanh",
                dtype=self.dtype_policy,
                name="pooler",
            )

    def build(self, input_shape: Any = None) -> None:
        hidden_shape = (None, None, self.config.hidden_size)
        self.embeddings.build((None, None))
        for block in self.blocks:
            block.build(hidden_shape)
        if self.has_pooler:
            self.pooler.build((None, self.config.hidden_size))
        self.built = True

    def freeze(self, layers: int) -> None:
        self.embeddings.trainable = False
        for block in self.blocks[:layers]:
            block.trainable = False

    def call(
        self,
        input_word_ids: Any,
        input_type_ids: Any | None = None,
        attention_mask: Any | None = None,
        position_ids: Any | None = None,
        pooled_positions: Any | None = None,
        training: bool | None = False,
        dropout_key: Any | None = None,
        output_hidden_states: bool = False,
        read_positions: Any | None = None,
        pooled_only: bool = False,
    ) -> dict[str, Any]:
        """Encodes a batch of token ids; see `EncoderInputs` for the arguments.

        With `read_positions` or `pooled_only` the last block computes keys and values of all
        tokens, but the rest, five sixths of it, only for those read. Without a `dropout_key`,
        int32[2], training draws one.

        Returns:
            `sequence_output` [batch, length, hidden], which is 0 on padding where the mask is
            [batch, length]; or [batch, number, hidden] at `read_positions`; with a pooler
            `pooled_output` [batch, hidden], or [batch, texts, hidden] at `pooled_positions`; if
            asked for `hidden_states`, a list of the embeddings' and every block's output, padding
            as it comes. All are in the compute dtype. Outputs of a row without tokens are finite,
            and mean nothing.
        """
        inputs = EncoderInputs(
            input_word_ids=input_word_ids,
            input_type_ids=input_type_ids,
            attention_mask=attention_mask,
            position_ids=position_ids,
            pooled_positions=pooled_positions,
            dropout_key=self.resolve_dropout_key(training, dropout_key),
            output_hidden_states=output_hidden_states,
            read_positions=read_positions,
            pooled_only=pooled_only,
        )
        return implementation().encode(self, inputs)

    def encode(self, inputs: EncoderInputs) -> dict[str, Any]:
        """Compute `call` by the plain layers."""
        bias = inputs.attention_bias()
        positions = inputs.computed_positions(has_pooler=self.has_pooler)
        hidden = self.embeddings(
            inputs.input_word_ids,
            input_type_ids=inputs.input_type_ids,
            position_ids=inputs.position_ids,
            dropout_key=inputs.dropout_key,
        )
        hidden_states = [hidden]
        for block in self.blocks:
            read = positions if block is self.blocks[-1] else None
            hidden = block(
                hidden, attention_bias=bias, dropout_key=inputs.dropout_key, positions=read
            )
            hidden_states.append(hidden)
        return self.outputs(inputs, hidden_states)

    def outputs(self, inputs: EncoderInputs, hidden_states: list[Any]) -> dict[str, Any]:
        """Makes the outputs of `call` from the outputs of the embeddings and every block.

        The last block's is [batch, length, hidden], or of the pooled tokens and those read.
        """
        hidden = hidden_states[-1]
        is_read = inputs.read_positions is not None or inputs.pooled_only
        if inputs.is_padded and not is_read:
            is_token = ops.cast(inputs.attention_mask, "bool")[:, :, None]
            hidden = ops.where(is_token, hidden, ops.zeros((), hidden.dtype))
        outputs = {} if inputs.pooled_only else {"sequence_output": hidden}
        if self.has_pooler:
            starts = inputs.pooled_positions
            texts = 1 if starts is None else ops.shape(starts)[1]
            first = hidden[:, :texts]
            if not is_read and starts is not None:
                first = gather_positions(hidden, starts)
            if is_read and not inputs.pooled_only:
                outputs["sequence_output"] = hidden[:, texts:]
            outputs["pooled_output"] = self.pooler(first[:, 0] if starts is None else first)
        if inputs.output_hidden_states:
            outputs["hidden_states"] = hidden_states
        return outputs

    def encode_inputs(
        self,
        inputs: dict[str, Any],
        *,
        training: bool | None,
        dropout_key: Any | None,
        read_positions: Any | None = None,
        pooled_only: bool = False,
    ) -> dict[str, Any]:
        """Encodes a batch given by the names that all task models take; see `call`.

        `inputs` has `input_word_ids`; optionally `input_type_ids`, `input_mask`, `position_ids`;
        for several texts per row `sequence_ids` [batch, length], equal where tokens see each
        other, in place of the mask, and `cls_positions` [batch, texts]. Other keys are ignored.
        """
        mask = inputs.get("input_mask")
        if "sequence_ids" in inputs:
            mask = same_sequence_mask(inputs["sequence_ids"])
        return self(
            inputs["input_word_ids"],
            input_type_ids=inputs.get("input_type_ids"),
            attention_mask=mask,
            position_ids=inputs.get("position_ids"),
            pooled_positions=inputs.get("cls_positions"),
            dropout_key=dropout_key,
            training=training,
            read_positions=read_positions,
            pooled_only=pooled_only,
        )

    def resolve_dropout_key(self, training: bool | None, dropout_key: Any | None) -> Any | None:
        """The key of the layers, int32[2]: None unless training.

        Without a `dropout_key` the next state of a Keras seed generator is drawn, as Keras'
        own dropout does; `keras.utils.set_random_seed` before making the model fixes it. Raises
        UsageError for training on another backend of Keras than TensorFlow.
        """
        if not training:
            return None
        require_dropout()
        if dropout_key is None:
            return ops.cast(self.seed_generator.next(), "int32")
        return dropout_key


def attention_maps(
    encoder: BertEncoder, input_word_ids: Any, input_type_ids: Any | None = None
) -> np.ndarray:
    """The attention of texts of one length, as HuggingFace's `output_attentions`.

    Ids and types are int32 [batch, length], with [CLS] and [SEP], without padding. Returns float32
    [layers, batch, heads, query, key]; the keys of a query add up to 1.
    """
    states = encoder(input_word_ids, input_type_ids, output_hidden_states=True)["hidden_states"]
    maps = [
        block.attention.probabilities(hidden)
        for block, hidden in zip(encoder.blocks, states[:-1], strict=True)
    ]
    return np.stack([ops.convert_to_numpy(each) for each in maps])
