"""Where a model departs from the original BERT, which is all that some libraries know."""

from __future__ import annotations

import numpy as np

from bert_tf.config.bert import BertConfig

POOLER = "bert.pooler.dense"
_LAYER_NORM_EPS = 1e-12


def departures(config: BertConfig, library: str) -> list[str]:
    """How the original BERT differs from this model, one sentence per difference.

    Args:
        config: the model's.
        library: its name, for the sentences.
    """
    found = []
    if config.hidden_act == "gelu":
        found.append(
            f"the model has the exact GELU, {library} its tanh approximation; "
            "outputs will differ slightly"
        )
    if config.layer_norm_eps != _LAYER_NORM_EPS:
        found.append(
            f"the model's layer_norm_eps is {config.layer_norm_eps:g}, {library} has "
            f"{_LAYER_NORM_EPS:g}; outputs will differ slightly"
        )
    return found


def fresh_pooler(config: BertConfig) -> dict[str, np.ndarray]:
    """A new pooler for a model without one, by HuggingFace's names; the same every time."""
    width = config.hidden_size
    kernel = np.random.default_rng(0).standard_normal((width, width), np.float32)
    return {
        f"{POOLER}.weight": config.initializer_range * kernel,
        f"{POOLER}.bias": np.zeros(width, np.float32),
    }
