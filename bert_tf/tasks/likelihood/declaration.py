"""Options, inputs and outputs of the likelihood of texts, without TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bert_tf.base.errors import Fault
from bert_tf.config.section import option, optional
from bert_tf.config.sections.models import ExportConfig
from bert_tf.serving.signatures import EXCESS_TOKENS
from bert_tf.tasks.base.declaration import PredictionField, PretrainedTaskDeclaration

TEXT = "text"
PAIR = "text_pair"
# Beginnings of the names of outputs, by input.
PREFIXES = {TEXT: "predicted", PAIR: "predicted_pair"}
LOG_LIKELIHOOD = "log_likelihood"
TOKEN_COUNT = "token_count"
PERPLEXITY = "perplexity"
DIFFERENCE = "predicted_difference"


class LikelihoodConfig(ExportConfig):
    """Exports a pretrained model that tells how likely texts are."""

    text_column: str = option("column of the text", TEXT)
    text_pair_column: str | None = optional(
        "column of a second text, whose likelihood is compared with that of the first"
    )

    def faults(self) -> Iterator[str]:
        if self.text_column == self.text_pair_column:
            yield (
                f"text_pair_column: is {self.text_pair_column!r}, as is text_column; name another "
                "column, or leave it out"
            )


def _fields_of(name: str) -> tuple[PredictionField, ...]:
    """Return the predictions for an input."""
    prefix = PREFIXES[name]
    only_with = None if name == TEXT else name
    return (
        PredictionField(f"{prefix}_{LOG_LIKELIHOOD}", "value", only_with=only_with),
        PredictionField(f"{prefix}_{TOKEN_COUNT}", "count", only_with=only_with),
        PredictionField(f"{prefix}_{PERPLEXITY}", "value", only_with=only_with),
    )


def likelihood_faults(outputs: Mapping[str, Any]) -> dict[int, Fault]:
    """Return the reasons why rows have no likelihood, by number of the row."""
    faults: dict[int, Fault] = {}
    for prefix in PREFIXES.values():
        counts = outputs.get(f"{prefix}_{TOKEN_COUNT}", ())
        for row, count in enumerate(counts):
            if not count:
                faults[row] = ("text has no token", "")
    for row, excess in enumerate(outputs[EXCESS_TOKENS]):
        if excess:
            faults[row] = ("text is longer than the model reads", f"by {excess} tokens")
    return faults


LIKELIHOOD = PretrainedTaskDeclaration(
    name="likelihood",
    summary="the pseudo-log-likelihood, tokens and perplexity of a text, or of two",
    options=LikelihoodConfig,
    example="bert-pipeline export --run bert --task likelihood --output judge",
    inputs=(TEXT, PAIR),
    predictions=(
        *_fields_of(TEXT),
        *_fields_of(PAIR),
        PredictionField(DIFFERENCE, "value", only_with=PAIR),
    ),
    implementation="bert_tf.tasks.likelihood.task:LikelihoodTask",
    host="bert_tf.tasks.likelihood.host:LikelihoodHost",
    outcome_faults=likelihood_faults,
    is_exact=True,
)
