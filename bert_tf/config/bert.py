"""The shape of a BERT model, with the names of HuggingFace's and Google's config.json."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

from bert_tf.base.errors import UsageError

# Most bytes of weights in float32: four times the largest published BERT (Shoeybi et al. 2019).
LARGEST_MODEL_BYTES = 64 << 30
MOST_LAYERS = 1000  # of any width, because Keras builds a dozen objects for each
_FLOAT_BYTES = 4
HIDDEN_ACTIVATIONS = ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu")


@dataclasses.dataclass(frozen=True, kw_only=True)
class BertConfig:
    """Shape and regularization of a BERT encoder (Devlin et al. 2019, section 3).

    Fields have HuggingFace's names.

    Attributes:
        hidden_act: "gelu" is HuggingFace's exact GELU; "gelu_new" and "gelu_pytorch_tanh" are the
            tanh approximation of google-research/bert and KerasHub; "relu".
        initializer_range: standard deviation of initial weights.
        layer_norm_eps: added to the variance in LayerNorm.

    Raises:
        UsageError: a value is impossible, or the model would be too large.
    """

    vocab_size: int
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12

    def __post_init__(self) -> None:
        if fault := next(self._faults(), None):
            raise UsageError(f"model config: {fault}")

    def _faults(self) -> Iterator[str]:
        # Only the first fault is read, so later checks may rely on the earlier ones.
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            # Types of fields are texts, because annotations are not evaluated. `type` and not
            # `isinstance` for the value: True is an int in Python.
            if field.type == "int" and (type(value) is not int or value < 1):
                yield f"{field.name} must be a positive integer, got {value!r}"
        if self.hidden_size % self.num_attention_heads:
            yield (
                f"hidden_size {self.hidden_size} is not a multiple of num_attention_heads "
                f"{self.num_attention_heads}"
            )
        if self.hidden_act not in HIDDEN_ACTIVATIONS:
            known = ", ".join(HIDDEN_ACTIVATIONS)
            yield f"hidden_act {self.hidden_act!r} is not known; expected one of {known}"
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
            value = getattr(self, name)
            if not _is_number(value) or not 0 <= value < 1:
                yield f"{name} must be from 0 to below 1, got {value!r}"
        for name in ("initializer_range", "layer_norm_eps"):
            value = getattr(self, name)
            if not _is_number(value) or not 0 <= value <= 1:
                yield f"{name} must be from 0 to 1, got {value!r}"
        if self.num_hidden_layers > MOST_LAYERS:
            yield (
                f"num_hidden_layers is {self.num_hidden_layers:,}, at most {MOST_LAYERS:,} are "
                "supported; correct the config"
            )
        # A damaged config would otherwise fill the memory before anything fails.
        size = _FLOAT_BYTES * self.encoder_parameters
        if size > LARGEST_MODEL_BYTES:
            yield (
                f"{self.num_hidden_layers:,} layers of width {self.hidden_size:,} and "
                f"{self.vocab_size:,} vocabulary entries would take {size >> 30:,} GiB of weights, "
                f"at most {LARGEST_MODEL_BYTES >> 30} are built; correct the config"
            )

    @property
    def head_size(self) -> int:
        """Width of an attention head."""
        return self.hidden_size // self.num_attention_heads

    @property
    def encoder_parameters(self) -> int:
        """The number of the encoder's weights, without the pooler."""
        width = self.hidden_size
        inner = self.intermediate_size
        tables = self.vocab_size + self.max_position_embeddings + self.type_vocab_size
        # Query, key, value and output, each with a bias.
        attention = 4 * (width * width + width)
        feed_forward = 2 * width * inner + inner + width
        # Scale and shift of two LayerNorms.
        layer = attention + feed_forward + 2 * 2 * width
        return tables * width + 2 * width + self.num_hidden_layers * layer

    def as_dict(self) -> dict[str, Any]:
        """Return the content of a HuggingFace `config.json`."""
        return {"model_type": "bert", **dataclasses.asdict(self), "pad_token_id": 0}

    def fields(self) -> dict[str, Any]:
        """Return only the fields: `BertConfig(**config.fields()) == config`."""
        return dataclasses.asdict(self)

    def replace(self, **changes: Any) -> BertConfig:
        """Return the config with some fields changed."""
        return dataclasses.replace(self, **changes)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


SIZES: dict[str, dict[str, int]] = {
    name: {
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "intermediate_size": 4 * hidden,
    }
    for name, layers, hidden, heads in (
        ("tiny", 2, 128, 2),
        ("mini", 4, 256, 4),
        ("small", 4, 512, 8),
        ("medium", 8, 512, 8),
        ("base", 12, 768, 12),
        ("large", 24, 1024, 16),
    )
}


def sized_config(size: str, vocab_size: int, **changes: Any) -> BertConfig:
    """Return a published size with tanh GELU (Turc et al. 2019; Devlin et al. 2019).

    Args:
        size: key of `SIZES`.
        vocab_size: entries of the vocabulary.
        **changes: other fields of `BertConfig`.
    """
    fields: dict[str, Any] = {"hidden_act": "gelu_new", **SIZES[size], **changes}
    return BertConfig(vocab_size=vocab_size, **fields)
