"""The BERT encoder."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from bert_tf.config.bert import BertConfig
from bert_tf.cpu.switch import are_fused
from bert_tf.cpu.unpadding import Unpadded, unpadded
from bert_tf.layers.dropout import require_dropout
from bert_tf.layers.embeddings import BertEmbeddings
from bert_tf.layers.gather_positions import gather_positions
from bert_tf.layers.projection import Projection
from bert_tf.layers.repeated_block import RepeatedBlock
from bert_tf.layers.self_attention import attention_bias, same_sequence_mask
from bert_tf.layers.transformer_block import DROPOUT_STREAMS, TransformerBlock
from bert_tf.models.bert_model import BertModel


@keras.saving.register_keras_serializable(package="bert_tf")
class BertEncoder(BertModel):
    """Embeddings, transformer blocks and a pooler (Devlin et al. 2019, section 3).

    Args:
        config: shape and regularization.
        has_pooler: whether the first token's state goes through a dense tanh layer.
        dtype: Keras policy or its name; None for the global one.
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
        self._repeated_block = RepeatedBlock(self.blocks[0])
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
        """Leaves the embeddings and the first layers out of training."""
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
        """Encodes a batch of token ids.

        A head that reads few tokens says so by `read_positions` or `pooled_only`: the last block
        then computes keys and values of all tokens, but the rest, five sixths of it, for those that
        are read alone, forward and backward. Their outputs are the same.

        Kernels compute tokens alone, see `bert_tf.cpu.unpadding`: on the padding that they leave
        out `sequence_output` is 0, and a row without tokens has other outputs, which mean as
        little. `pooled_only` spares keys and values, too, see
        `bert_tf.cpu.first_token_attention`.

        Args:
            input_word_ids: int32 [batch, length].
            input_type_ids: int32 [batch, length], the segment of every token; None for all 0.
            attention_mask: int or bool, true where a token may be seen: [batch, length], or
                [batch, query, key] such as the block-diagonal mask of packed texts; None for all.
            position_ids: int32 [batch, length]; None for 0, 1, 2 … in every row.
            pooled_positions: int32 [batch, texts], where each of several texts in a row begins;
                None for one text per row.
            training: whether dropout is on.
            dropout_key: int32[2] that decides the dropout masks; None draws one.
            output_hidden_states: also return every layer's output; not for some tokens alone.
            read_positions: int32 [batch, number], the tokens of `sequence_output`; None for all.
            pooled_only: return `pooled_output` alone.

        Returns:
            `sequence_output` [batch, length, hidden], or [batch, number, hidden] at
            `read_positions`; with a pooler `pooled_output`
            [batch, hidden], or [batch, texts, hidden] at `pooled_positions`; if asked for
            `hidden_states`, a list of the embeddings' and every block's output. All are in the
            compute dtype.
        """
        key = self.resolve_dropout_key(training, dropout_key)
        bias = None if attention_mask is None else attention_bias(attention_mask)
        rows = None
        if read_positions is None and pooled_positions is None and not output_hidden_states:
            rows = _without_padding(attention_mask)
        if rows is None:
            positions = self._computed_positions(
                input_word_ids, pooled_positions, read_positions, pooled_only
            )
        else:
            position_ids = rows.position_ids if position_ids is None else rows.take(position_ids)
            input_word_ids = rows.take(input_word_ids)
            input_type_ids = None if input_type_ids is None else rows.take(input_type_ids)
            positions = rows.firsts if pooled_only else None
        hidden = self.embeddings(
            input_word_ids,
            input_type_ids=input_type_ids,
            position_ids=position_ids,
            dropout_key=key,
        )
        hidden_states = [hidden]
        for block in self.blocks:
            hidden = self._repeated_block(
                block,
                hidden,
                attention_bias=bias,
                dropout_key=key,
                positions=positions if block is self.blocks[-1] else None,
                token_numbers=None if rows is None else rows.numbers,
            )
            hidden_states.append(hidden)
        if rows is not None:
            hidden = ops.swapaxes(hidden, 0, 1) if pooled_only else rows.padded(hidden)
        outputs = {"sequence_output": hidden}
        if self.has_pooler:
            texts = 1 if pooled_positions is None else ops.shape(pooled_positions)[1]
            first = hidden[:, :texts]
            if positions is not None:
                outputs["sequence_output"] = hidden[:, texts:]
            elif pooled_positions is not None:
                first = gather_positions(hidden, pooled_positions)
            outputs["pooled_output"] = self.pooler(
                first[:, 0] if pooled_positions is None else first
            )
        if pooled_only:
            del outputs["sequence_output"]
        if output_hidden_states:
            outputs["hidden_states"] = hidden_states
        return outputs

    def _computed_positions(
        self, ids: Any, pooled_positions: Any, read_positions: Any, pooled_only: bool
    ) -> Any | None:
        """What the last block computes: the pooled tokens, then those read; None for all."""
        if read_positions is None and not pooled_only:
            return None
        positions = [] if pooled_only else [ops.cast(read_positions, "int32")]
        if self.has_pooler:
            if pooled_positions is None:
                pooled_positions = ops.zeros((ops.shape(ids)[0], 1), "int32")
            positions.insert(0, ops.cast(pooled_positions, "int32"))
        return ops.concatenate(positions, axis=1)

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

        Args:
            inputs: `input_word_ids`; optionally `input_type_ids`, `input_mask`, `position_ids`;
                for several texts per row `sequence_ids` [batch, length], equal where tokens see
                each other, in place of the mask, and `cls_positions` [batch, texts]. Other keys are
                ignored.
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
        """The key that the layers use, int32[2]: None unless training.

        Without a `dropout_key` the next state of a Keras seed generator is drawn, as Keras'
        own dropout does; `keras.utils.set_random_seed` before making the model fixes it.

        Raises:
            UsageError: training on another backend of Keras than TensorFlow.
        """
        if not training:
            return None
        require_dropout()
        if dropout_key is None:
            return ops.cast(self.seed_generator.next(), "int32")
        return dropout_key


def _without_padding(attention_mask: Any | None) -> Unpadded | None:
    """For kernels and padded rows, each of one text."""
    if not are_fused() or attention_mask is None or len(attention_mask.shape) != 2:
        return None
    return unpadded(attention_mask)
