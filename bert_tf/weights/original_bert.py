"""Where a model's arithmetic departs from the original BERT's, which some libraries alone know."""

from __future__ import annotations

from bert_tf.config.bert import BertConfig

_LAYER_NORM_EPS = 1e-12


def departures(config: BertConfig, library: str) -> list[str]:
    """What a library that computes the original BERT does otherwise, a sentence each.

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
