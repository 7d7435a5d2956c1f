"""The likelihood of texts, by a pretrained model's masked-LM head."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Self

from bert_tf.data.text.vocab_file import SPECIALS_OF_TEXT
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.serving.graphs.likelihood import LikelihoodModule
from bert_tf.serving.signatures import EXCESS_TOKENS
from bert_tf.tasks.base.declaration import (
    PRETRAINING_METRIC_TYPES,
    PretrainedTaskDeclaration,
    TaskCard,
)
from bert_tf.tasks.base.served_task import MaskedLMTask
from bert_tf.tasks.likelihood.declaration import (
    DIFFERENCE,
    LIKELIHOOD,
    LOG_LIKELIHOOD,
    PREFIXES,
    TEXT,
    LikelihoodConfig,
)
from bert_tf.weights.model_directory import ModelDirectory


@dataclasses.dataclass(frozen=True, kw_only=True)
class LikelihoodColumns:
    """Columns of the texts; `text_pair` is None for single texts."""

    text: str
    text_pair: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class LikelihoodTask(MaskedLMTask):
    """Scores texts by masking each token in turn (Salazar et al. 2020)."""

    declaration: ClassVar[PretrainedTaskDeclaration] = LIKELIHOOD

    columns: LikelihoodColumns
    max_seq_length: int

    @classmethod
    def of_pretrained(cls, directory: ModelDirectory, config: LikelihoodConfig) -> Self:
        cls.check_head(directory)
        return cls(
            columns=LikelihoodColumns(text=config.text_column, text_pair=config.text_pair_column),
            max_seq_length=directory.config.max_position_embeddings,
        )

    def serving_module(self, model: Any, tokenizer: WordPieceTokenizer) -> LikelihoodModule:
        return LikelihoodModule(
            model,
            tokenizer,
            max_seq_length=self.max_seq_length,
            has_pair=self.columns.text_pair is not None,
        )

    def card(self) -> TaskCard:
        columns = f"reads the column `{self.columns.text}`"
        example = {TEXT: "The cats sleep."}
        compared: tuple[str, ...] = ()
        if self.columns.text_pair is not None:
            columns = f"reads the columns `{self.columns.text}` and `{self.columns.text_pair}`"
            example["text_pair"] = "The cats sleeps."
            compared = (f"`{DIFFERENCE}` is above 0 if the first text is more likely",)
        return TaskCard(
            title="Likelihood of texts",
            facts=(
                columns,
                "the pseudo-log-likelihood in nats: the sum of the log-probabilities of tokens, "
                "each masked in turn (Salazar et al. 2020); the perplexity is per token",
                *compared,
                f"a text has at most {self.max_seq_length - SPECIALS_OF_TEXT} tokens; longer ones "
                f"are not scored, and `{EXCESS_TOKENS}` counts the tokens beyond",
            ),
            example=example,
            signature_output=f"{PREFIXES[TEXT]}_{LOG_LIKELIHOOD}",
            transformers_class="AutoModelForMaskedLM",
            pipeline_tag="fill-mask",
            metric_types=PRETRAINING_METRIC_TYPES,
            google_script="run_pretraining.py",
            script_reads_text=False,
            limits=(
                "Likelihoods are those of the pretraining corpus. They fall with the length of a "
                "text, and only compare texts that the same vocabulary tokenizes."
            ),
        )
