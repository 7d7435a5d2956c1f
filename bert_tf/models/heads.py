"""Models: the encoder with a head."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, ClassVar

import keras
from keras import ops

from bert_tf.config.bert import BertConfig
from bert_tf.config.embedding_recipe import EmbeddingRecipe
from bert_tf.layers.dropout import StatelessDropout
from bert_tf.layers.implementation import implementation
from bert_tf.layers.masked_lm_head import MaskedLMHead
from bert_tf.layers.pooling import pool_tokens, unit_vectors
from bert_tf.layers.projection import Projection
from bert_tf.layers.transformer_block import DROPOUT_STREAMS
from bert_tf.models.encoder import BertEncoder, BertModel

_SEQUENCES = ("input_word_ids", "input_mask", "input_type_ids", "position_ids")


class ProblemType(enum.StrEnum):
    """Purpose of a classifier, by HuggingFace's names (`problem_type` of `config.json`)."""

    REGRESSION = enum.auto()
    SINGLE_LABEL_CLASSIFICATION = enum.auto()
    MULTI_LABEL_CLASSIFICATION = enum.auto()


class ModelWithHead(BertModel):
    """Base of models with an encoder and a head."""

    has_pooler: ClassVar[bool] = False

    def __init__(self, config: BertConfig, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.encoder = BertEncoder(
            config, has_pooler=self.has_pooler, dtype=self.dtype_policy, name="encoder"
        )

    def build(self, input_shape: Any = None) -> None:
        self.encoder.build_weights()
        for layer in self.layers:
            if not layer.built:
                layer.build((None, self.config.hidden_size))
        self.built = True

    def call(self, inputs: Any, training: bool | None = False, dropout_key: Any = None) -> Any:
        """Return the outputs of `head`.

        Args:
            inputs: `input_word_ids`, `input_mask`, `input_type_ids`, int [batch, length], and
                optionally those of `BertEncoder.encode_inputs`; other keys are ignored.
            training: whether dropout is applied.
            dropout_key: int32 [2]; None draws one in training.
        """
        key = self.encoder.resolve_dropout_key(training, dropout_key)
        encoded = self.encoder.encode_inputs(
            inputs, training=training, dropout_key=key, **self._tokens_read(inputs)
        )
        return self.head(encoded, inputs, key)

    def head(self, encoded: dict[str, Any], inputs: dict[str, Any], dropout_key: Any) -> Any:
        """Compute the outputs.

        Args:
            encoded: outputs of the encoder.
            inputs: see `call`.
            dropout_key: int32 [2]; None for no dropout.
        """
        raise NotImplementedError

    def _tokens_read(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return {"pooled_only": not self.reads_all_tokens}

    def _linear(self, size: int, name: str, initializer_range: float | None = None) -> Projection:
        # The default differs from the encoder's range, with which the head of a small model learns
        # little in its first epochs.
        return Projection(
            size, initializer_range=initializer_range, dtype=self.dtype_policy, name=name
        )


@keras.saving.register_keras_serializable(package="bert_tf")
class BertMaskedLM(ModelWithHead):
    """The masked-LM head on the encoder, without a pooler (Devlin et al. 2019, section 3.1)."""

    huggingface_class = "BertForMaskedLM"
    reads_all_tokens = False

    def __init__(self, config: BertConfig, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.masked_lm = MaskedLMHead(config, dtype=self.dtype_policy, name="masked_lm")

    def head(self, encoded: dict[str, Any], inputs: dict[str, Any], dropout_key: Any) -> Any:
        """Score the vocabulary at `masked_lm_positions`, int [batch, predictions], which is an
        input.

        Returns:
            Logits, float32 [batch, predictions, vocab].
        """
        return implementation().masked_lm_logits(
            self.masked_lm,
            encoded["sequence_output"],
            self.encoder.embeddings.word_embeddings,
        )

    def _tokens_read(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return {"read_positions": inputs["masked_lm_positions"]}


@keras.saving.register_keras_serializable(package="bert_tf")
class BertPretrainingModel(BertMaskedLM):
    """The two tasks of Devlin et al. 2019, section 3.1: masked tokens and next sentences."""

    has_pooler = True
    huggingface_class = "BertForPreTraining"

    def __init__(self, config: BertConfig, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.next_sentence = self._linear(2, "next_sentence", config.initializer_range)

    def head(self, encoded: dict[str, Any], inputs: dict[str, Any], dropout_key: Any) -> Any:
        """Score tokens at the masked positions, and the order of the segments.

        Inputs are those of `BertMaskedLM`; for packed rows also `sequence_ids` and `cls_positions`,
        see `BertEncoder.encode_inputs`. `input_mask` may be [batch, length, length].

        Returns:
            mlm_logits: float32 [batch, predictions, vocab].
            nsp_logits: float32 [batch, 2], for packed rows [batch, sequences, 2], where 1 means
                that the second segment is random.
        """
        mlm_logits = super().head(encoded, inputs, dropout_key)
        nsp_logits = ops.cast(self.next_sentence(encoded["pooled_output"]), "float32")
        return {"mlm_logits": mlm_logits, "nsp_logits": nsp_logits}


@keras.saving.register_keras_serializable(package="bert_tf")
class BertNextSentence(ModelWithHead):
    """The next-sentence head on the pooled output (Devlin et al. 2019, section 3.1, task 2)."""

    has_pooler = True
    huggingface_class = "BertForNextSentencePrediction"
    reads_all_tokens = False

    def __init__(self, config: BertConfig, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.next_sentence = self._linear(2, "next_sentence", config.initializer_range)

    def head(self, encoded: dict[str, Any], inputs: dict[str, Any], dropout_key: Any) -> Any:
        """Return logits, float32 [batch, 2], where 0 means that the second text follows."""
        return ops.cast(self.next_sentence(encoded["pooled_output"]), "float32")


class LinearHeadModel(ModelWithHead):
    """Base of models with dropout and a linear layer on the encoder.

    Args:
        config: sizes; `hidden_dropout_prob` is the dropout rate.
        outputs: width of the linear layer.
    """

    def __init__(self, config: BertConfig, outputs: int, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.dropout = StatelessDropout(
            config.hidden_dropout_prob,
            stream=1 + DROPOUT_STREAMS * config.num_hidden_layers,  # after the encoder's last one
            dtype=self.dtype_policy,
            name="dropout",
        )
        self.classifier = self._linear(outputs, "classifier")

    def head(self, encoded: dict[str, Any], inputs: dict[str, Any], dropout_key: Any) -> Any:
        """Score texts by their pooled output, or without a pooler every token.

        Special tokens, padding and tokens that continue a word are scored, too; the caller ignores
        them.

        Returns:
            Logits, float32 [batch, outputs] or [batch, length, outputs].
        """
        states = encoded["pooled_output" if self.has_pooler else "sequence_output"]
        return ops.cast(self.classifier(self.dropout(states, dropout_key=dropout_key)), "float32")


@keras.saving.register_keras_serializable(package="bert_tf")
class BertClassifier(LinearHeadModel):
    """A linear layer on the pooled output (Devlin et al. 2019, section 4.1).

    Args:
        config: sizes.
        num_labels: number of logits.
        problem_type: one of `ProblemType`; None if one of the labels is chosen.
        initial_bias: [labels] values; () for zeros.
    """

    has_pooler = True
    huggingface_class = "BertForSequenceClassification"
    reads_all_tokens = False
    own_arguments = ("num_labels", "problem_type")

    def __init__(
        self,
        config: BertConfig,
        num_labels: int,
        *,
        problem_type: str | None = None,
        initial_bias: Sequence[float] = (),
        **kwargs: Any,
    ):
        super().__init__(config, num_labels, **kwargs)
        self.num_labels = num_labels
        self.problem_type = problem_type
        self._initial_bias = tuple(initial_bias)

    def build(self, input_shape: Any = None) -> None:
        super().build(input_shape)
        if self._initial_bias:
            self.classifier.bias.assign(self._initial_bias)


@keras.saving.register_keras_serializable(package="bert_tf")
class BertRegressor(BertClassifier):
    """A linear layer of one output on the pooled output, like HuggingFace's for STS-B.

    Its variables are trained for targets of mean 0 and deviation 1. Model directories contain the
    layer that gives the targets themselves (`bert_tf.weights.tensor_names`).

    Args:
        config: sizes.
        target_mean, target_scale: mean and standard deviation of the targets.
    """

    own_arguments = ("target_mean", "target_scale")

    def __init__(
        self,
        config: BertConfig,
        *,
        target_mean: float = 0.0,
        target_scale: float = 1.0,
        **kwargs: Any,
    ):
        super().__init__(config, num_labels=1, problem_type=ProblemType.REGRESSION, **kwargs)
        self.target_mean = target_mean
        self.target_scale = target_scale

    def head(self, encoded: dict[str, Any], inputs: dict[str, Any], dropout_key: Any) -> Any:
        """Predict the targets: float32 [batch, 1]."""
        standardized = super().head(encoded, inputs, dropout_key)
        return standardized * self.target_scale + self.target_mean


@keras.saving.register_keras_serializable(package="bert_tf")
class BertTokenClassifier(LinearHeadModel):
    """A linear layer on the last state of every token (Devlin et al. 2019, section 5.3)."""

    huggingface_class = "BertForTokenClassification"
    own_arguments = ("num_labels",)

    def __init__(self, config: BertConfig, num_labels: int, **kwargs: Any):
        super().__init__(config, num_labels, **kwargs)
        self.num_labels = num_labels


@keras.saving.register_keras_serializable(package="bert_tf")
class BertQuestionAnswerer(ModelWithHead):
    """A start and an end score for every token (Devlin et al. 2019, section 4.2)."""

    huggingface_class = "BertForQuestionAnswering"

    def __init__(self, config: BertConfig, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.span = self._linear(2, "span")

    def head(self, encoded: dict[str, Any], inputs: dict[str, Any], dropout_key: Any) -> Any:
        """Return start and end logits of every token, also padding, float32 [batch, length]."""
        logits = ops.cast(self.span(encoded["sequence_output"]), "float32")
        return logits[..., 0], logits[..., 1]


@keras.saving.register_keras_serializable(package="bert_tf")
class BertMultipleChoice(LinearHeadModel):
    """One score for each sequence of a context and a choice (Devlin et al. 2019, section 4.4)."""

    has_pooler = True
    huggingface_class = "BertForMultipleChoice"
    reads_all_tokens = False

    def __init__(self, config: BertConfig, **kwargs: Any):
        super().__init__(config, outputs=1, **kwargs)

    def call(self, inputs: Any, training: bool | None = False, dropout_key: Any = None) -> Any:
        """Score sequences, int [..., length] with one or two leading axes: float32 [...]."""
        shape, flat = _flat_sequences(inputs)
        return ops.reshape(super().call(flat, training, dropout_key), shape[:-1])


@keras.saving.register_keras_serializable(package="bert_tf")
class BertSentenceEncoder(ModelWithHead):
    """The encoder with pooled token vectors (Sentence-BERT, Reimers and Gurevych 2019, section 3).

    Args:
        config: sizes.
        pooling, normalize: see `EmbeddingRecipe`.
        max_seq_length: most tokens of a text; only kept with the model.
    """

    own_arguments = ("pooling", "normalize", "max_seq_length")
    huggingface_class = "BertModel"

    def __init__(
        self,
        config: BertConfig,
        *,
        pooling: str,
        normalize: bool,
        max_seq_length: int,
        **kwargs: Any,
    ):
        super().__init__(config, **kwargs)
        self.pooling = pooling
        self.normalize = normalize
        self.max_seq_length = max_seq_length

    @property
    def recipe(self) -> EmbeddingRecipe:
        """The recipe that makes the same vectors."""
        return EmbeddingRecipe(
            pooling=self.pooling,
            normalize=self.normalize,
            max_seq_length=self.max_seq_length,
            is_trained=True,
        )

    def call(self, inputs: Any, training: bool | None = False, dropout_key: Any = None) -> Any:
        """Encode int [..., length] to float32 [..., hidden], finite also for padding."""
        shape, flat = _flat_sequences(inputs)
        vectors = super().call(flat, training, dropout_key)
        return ops.reshape(vectors, (*shape[:-1], self.config.hidden_size))

    def head(self, encoded: dict[str, Any], inputs: dict[str, Any], dropout_key: Any) -> Any:
        states = ops.cast(encoded["sequence_output"], "float32")
        vectors = pool_tokens(states, inputs["input_mask"], self.pooling)
        return unit_vectors(vectors) if self.normalize else vectors


def _flat_sequences(inputs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the shape of the token ids, and all inputs as [sequences, length]."""
    shape = ops.shape(inputs["input_word_ids"])
    flat = {
        name: ops.reshape(inputs[name], (-1, shape[-1])) for name in _SEQUENCES if name in inputs
    }
    return shape, flat
