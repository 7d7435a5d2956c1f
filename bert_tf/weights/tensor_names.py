"""The HuggingFace tensors that the variables of a model consist of."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np

from bert_tf.layers.masked_lm_head import MaskedLMHead
from bert_tf.layers.projection import Projection
from bert_tf.models.encoder import BertEncoder
from bert_tf.models.heads import (
    BertMaskedLM,
    BertNextSentence,
    BertPretrainingModel,
    BertQuestionAnswerer,
    BertRegressor,
    BertSentenceEncoder,
    LinearHeadModel,
)

ENCODER_PREFIX = "bert."
_UNPREFIXED_ENCODER = re.compile(r"(embeddings|encoder|pooler)\.")
_WRAPPED = re.compile(r"^(?:(?:module|_orig_mod|model)\.)+")
_OLD_LAYER_NORM = re.compile(r"(?<=LayerNorm\.)(gamma|beta)$")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TensorBinding:
    """One variable and its HuggingFace tensors, joined along the variable's last axis.

    Attributes:
        variable: variable of the model.
        names: HuggingFace's names of the tensors; several for queries, keys and values.
        is_transposed: whether to transpose, since PyTorch stores kernels as [output, input].
        is_required: whether a model directory without it is useless; heads and the pooler are not
            required.
    """

    variable: keras.Variable
    names: tuple[str, ...]
    is_transposed: bool = False
    is_required: bool = False

    def join(self, tensors: list[np.ndarray]) -> np.ndarray:
        """Return the value of the variable from the tensors called `names`."""
        if self.is_transposed:
            tensors = [tensor.T for tensor in tensors]
        return np.concatenate(tensors, axis=-1)

    def split(self, value: np.ndarray) -> dict[str, np.ndarray]:
        """Return the tensors by name from the value of the variable, float32."""
        parts = np.split(value.astype(np.float32), len(self.names), axis=-1)
        return {
            name: part.T if self.is_transposed else part
            for name, part in zip(self.names, parts, strict=True)
        }


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScaledBinding(TensorBinding):
    """One variable whose tensors contain `value * scale + offset`."""

    scale: float
    offset: float

    def join(self, tensors: list[np.ndarray]) -> np.ndarray:
        value = super().join(tensors).astype(np.float64)
        return ((value - self.offset) / self.scale).astype(np.float32)

    def split(self, value: np.ndarray) -> dict[str, np.ndarray]:
        return super().split(value.astype(np.float64) * self.scale + self.offset)


def canonical_name(name: str) -> str:
    """Return HuggingFace's present name of a tensor, with the prefix of task models.

    Folders of a bare `BertModel` lack the prefix `bert.`. Checkpoints converted before 2019 have
    `LayerNorm.gamma` and `LayerNorm.beta`. `DataParallel`, `torch.compile` and other modules around
    the model add a prefix.
    """
    name = _WRAPPED.sub("", name)
    if _UNPREFIXED_ENCODER.match(name):
        name = ENCODER_PREFIX + name
    return _OLD_LAYER_NORM.sub(lambda old: {"gamma": "weight", "beta": "bias"}[old[0]], name)


def model_bindings(model: Any) -> list[TensorBinding]:
    """Return a binding for every weight of a built model, the encoder's first.

    Raises:
        TypeError: HuggingFace has no equivalent of the model's class.
    """
    if isinstance(model, BertEncoder):
        return list(_encoder_bindings(model))
    return [*_encoder_bindings(model.encoder), *head_bindings(model)]


def _encoder_bindings(encoder: BertEncoder) -> Iterator[TensorBinding]:
    embeddings = encoder.embeddings
    for name, table in (
        ("word_embeddings", embeddings.word_embeddings),
        ("position_embeddings", embeddings.position_embeddings),
        ("token_type_embeddings", embeddings.segment_embeddings),
    ):
        yield TensorBinding(
            variable=table, names=(f"bert.embeddings.{name}.weight",), is_required=True
        )
    yield from _layer_norm(embeddings.layer_norm, "bert.embeddings.LayerNorm", is_required=True)
    for index, block in enumerate(encoder.blocks):
        prefix = f"bert.encoder.layer.{index}"
        attention = block.attention
        inputs = tuple(f"{prefix}.attention.self.{part}" for part in ("query", "key", "value"))
        yield from _projection(attention.query_key_value, *inputs, is_required=True)
        for layer, name in (
            (attention.output_projection, "attention.output.dense"),
            (block.intermediate, "intermediate.dense"),
            (block.output_projection, "output.dense"),
        ):
            yield from _projection(layer, f"{prefix}.{name}", is_required=True)
        for norm, name in (
            (block.attention_layer_norm, "attention.output.LayerNorm"),
            (block.output_layer_norm, "output.LayerNorm"),
        ):
            yield from _layer_norm(norm, f"{prefix}.{name}", is_required=True)
    if encoder.has_pooler:
        yield from _projection(encoder.pooler, "bert.pooler.dense")


@functools.singledispatch
def head_bindings(model: Any) -> Iterator[TensorBinding]:
    """Return a binding for every weight outside of the encoder; each class registers its own.

    Raises:
        TypeError: none is registered for the model's class.
    """
    raise TypeError(f"{type(model).__name__} has no equivalent among HuggingFace's BERT models")


head_bindings.register(BertSentenceEncoder, lambda model: iter(()))
head_bindings.register(BertMaskedLM, lambda model: _masked_lm(model.masked_lm))
head_bindings.register(LinearHeadModel, lambda model: _projection(model.classifier, "classifier"))
head_bindings.register(BertQuestionAnswerer, lambda model: _projection(model.span, "qa_outputs"))


@head_bindings.register(BertNextSentence)
def _next_sentence(model: Any) -> Iterator[TensorBinding]:
    yield from _projection(model.next_sentence, "cls.seq_relationship")


@head_bindings.register
def _(model: BertPretrainingModel) -> Iterator[TensorBinding]:
    yield from _masked_lm(model.masked_lm)
    yield from _next_sentence(model)


@head_bindings.register
def _(model: BertRegressor) -> Iterator[TensorBinding]:
    # Training uses standardized targets; HuggingFace's tensors give the targets themselves.
    kernel, bias = _projection(model.classifier, "classifier")
    yield ScaledBinding(**vars(kernel), scale=model.target_scale, offset=0.0)
    yield ScaledBinding(**vars(bias), scale=model.target_scale, offset=model.target_mean)


def _masked_lm(head: MaskedLMHead) -> Iterator[TensorBinding]:
    yield from _projection(head.transform, "cls.predictions.transform.dense")
    yield from _layer_norm(head.layer_norm, "cls.predictions.transform.LayerNorm")
    yield TensorBinding(variable=head.output_bias, names=("cls.predictions.bias",))


def _projection(
    layer: Projection, *names: str, is_required: bool = False
) -> Iterator[TensorBinding]:
    for variable, part in ((layer.kernel, "weight"), (layer.bias, "bias")):
        yield TensorBinding(
            variable=variable,
            names=tuple(f"{name}.{part}" for name in names),
            is_transposed=part == "weight",
            is_required=is_required,
        )


def _layer_norm(layer: Any, name: str, *, is_required: bool = False) -> Iterator[TensorBinding]:
    for variable, part in ((layer.gamma, "weight"), (layer.beta, "bias")):
        yield TensorBinding(variable=variable, names=(f"{name}.{part}",), is_required=is_required)
