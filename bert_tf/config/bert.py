"""The shape of a BERT model, with the names of HuggingFace's and Google's config.json."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from bert_tf.config.errors import UsageError

HIDDEN_ACTIVATIONS = ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu")


@dataclasses.dataclass(frozen=True, kw_only=True)
class BertConfig:
    """Shape and regularisation of a BERT encoder (Devlin et al. 2019, section 3).

    `hidden_act` decides the GELU: "gelu" is the exact one of HuggingFace; "gelu_new" and
    "gelu_pytorch_tanh" are the tanh approximation that google-research/bert and KerasHub use.

    Raises:
        UsageError: if a value is out of range or two values contradict each other.
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

    def __post_init__(self):
        for name in (
            "vocab_size",
            "hidden_size",
            "num_hidden_layers",
            "num_attention_heads",
            "intermediate_size",
            "max_position_embeddings",
            "type_vocab_size",
        ):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise UsageError(f"model config: {name} must be a positive number, got {value!r}")
        if self.hidden_size % self.num_attention_heads:
            raise UsageError(
                f"model config: hidden_size {self.hidden_size} is not a multiple of "
                f"num_attention_heads {self.num_attention_heads}"
            )
        if self.hidden_act not in HIDDEN_ACTIVATIONS:
            raise UsageError(
                f"model config: hidden_act {self.hidden_act!r} is not known; "
                f"expected one of {', '.join(HIDDEN_ACTIVATIONS)}"
            )
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
            if not 0 <= getattr(self, name) < 1:
                raise UsageError(
                    f"model config: {name} must be from 0 to below 1, got {getattr(self, name)!r}"
                )

    @property
    def head_size(self) -> int:
        """Width of one attention head."""
        return self.hidden_size // self.num_attention_heads

    def as_dict(self) -> dict[str, Any]:
        """The fields as a HuggingFace `config.json` names them."""
        return {"model_type": "bert", **dataclasses.asdict(self), "pad_token_id": 0}

    def fields(self) -> dict[str, Any]:
        """The fields alone: `BertConfig(**config.fields()) == config`."""
        return dataclasses.asdict(self)

    def replace(self, **changes: Any) -> BertConfig:
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)


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
    """The config of a published size (Turc et al. 2019; Devlin et al. 2019) for a vocabulary.

    The activation is the tanh GELU, as in google-research/bert, which these sizes come from.
    """
    fields: dict[str, Any] = {"hidden_act": "gelu_new", **SIZES[size], **changes}
    return BertConfig(vocab_size=vocab_size, **fields)


def read_bert_config(path: str | Path) -> BertConfig:
    """Reads a HuggingFace or Google `config.json` (keys that do not shape the model are ignored).

    Raises:
        UsageError: the file is missing, is not JSON, is of another architecture or lacks
            `vocab_size`.
    """
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise UsageError(f"{path}: not valid JSON ({error})") from None
    if not isinstance(document, dict) or "vocab_size" not in document:
        raise UsageError(f"{path}: expected a BERT config with the key 'vocab_size'")
    model_type = document.get("model_type", "bert")
    if model_type != "bert":
        raise UsageError(f"{path}: model_type is {model_type!r}; only 'bert' can be read")
    if document.get("position_embedding_type", "absolute") != "absolute":
        raise UsageError(f"{path}: only absolute position embeddings can be read")
    known = {field.name for field in dataclasses.fields(BertConfig)}
    fields = {key: value for key, value in document.items() if key in known}
    is_google = "model_type" not in document
    if is_google and fields.get("hidden_act", "gelu") == "gelu":
        fields["hidden_act"] = "gelu_new"  # what modeling.py computes under that name
    return BertConfig(**fields)
