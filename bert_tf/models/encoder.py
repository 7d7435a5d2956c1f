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
    """Base of the models: made from a `BertConfig`, and built without data.

    Attributes:
        config: sizes of the encoder.
        own_arguments: names of further constructor arguments, which are attributes and saved.
        huggingface_class: HuggingFace's class with the same weights; a model with a new head must
            also register with `bert_tf.weights.tensor_names.head_bindings`.
        reads_all_tokens: whether the head reads the last block's output of all tokens, and not only
            of the first and the masked ones.
    """

    own_arguments: ClassVar[tuple[str, ...]] = ()
    huggingface_class: ClassVar[str]
    reads_all_tokens: ClassVar[bool] = True

    def __init__(self, config: BertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.config = config

    def build_weights(self) -> None:
        """Create the variables, if that has not been done."""
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
    """Embeddings, transformer blocks, and a pooler (Devlin et al. 2019, section 3).

    Args:
        config: sizes, activation and dropout rates.
        has_pooler: whether there is a pooler, a dense layer with tanh on the first token.
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
        """Exclude the embeddings and the first `layers` blocks from training."""
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
        """Encode a batch of token ids.

        With `read_positions` or `pooled_only`, the last block computes keys and values of all
        tokens, but the rest, five sixths of it, only for the tokens that are read. Outputs of a row
        without tokens are finite, but have no meaning.

        Args:
            training: whether dropout is applied.
            dropout_key: int32 [2]; None draws one in training.
            input_word_ids, input_type_ids, attention_mask, position_ids, pooled_positions,
                output_hidden_states, read_positions, pooled_only: see `EncoderInputs`.

        Returns:
            In the compute dtype:
            sequence_output: [batch, length, hidden], 0 on padding if the mask is [batch, length];
                or [batch, number, hidden] at `read_positions`.
            pooled_output: with a pooler, [batch, hidden], or [batch, texts, hidden] at
                `pooled_positions`.
            hidden_states: if asked for, a list of the outputs of the embeddings and of every block;
                those of padding are undefined.
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
        """Return the outputs of `call`.

        Args:
            inputs: the arguments of `call`.
            hidden_states: outputs of the embeddings and of every block. The last one is [batch,
                length, hidden], or has only the pooled tokens and those read.
        """
        hidden = hidden_states[-1]
        # Whether the last block has computed only pooled tokens, and then those that are read.
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
        """Encode a batch given by the input names of all models with a head.

        Args:
            inputs: `input_word_ids`; optionally `input_type_ids`, `input_mask`, `position_ids`. For
                several texts per row `cls_positions` [batch, texts] and, instead of the mask,
                `sequence_ids` [batch, length], equal for tokens that attend to each other. Other
                keys are ignored.
            training, dropout_key, read_positions, pooled_only: see `call`.
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
        """Return the dropout key of the layers, int32 [2]; None unless training.

        If `dropout_key` is None, the next state of a Keras seed generator is drawn, like in Keras'
        own dropout; `keras.utils.set_random_seed` before making the model fixes it.

        Raises:
            UsageError: training on another backend of Keras than TensorFlow.
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
    """Return the attention weights of all layers, like HuggingFace's `output_attentions`.

    Args:
        encoder: a built encoder.
        input_word_ids: int32 [batch, length], with [CLS] and [SEP], without padding.
        input_type_ids: int32 [batch, length]; None for all 0.

    Returns:
        float32 [layers, batch, heads, query, key]; the keys of a query sum to 1.
    """
    states = encoder(input_word_ids, input_type_ids, output_hidden_states=True)["hidden_states"]
    maps = [
        block.attention.probabilities(hidden)
        for block, hidden in zip(encoder.blocks, states[:-1], strict=True)
    ]
    return np.stack([ops.convert_to_numpy(each) for each in maps])
