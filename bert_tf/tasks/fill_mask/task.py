"""The most likely tokens for the masks of a text, by a pretrained model's masked-LM head."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Self

import tensorflow as tf

from bert_tf.base.errors import UsageError
from bert_tf.config.bert import BertConfig
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.models.heads import BertMaskedLM
from bert_tf.serving.graphs.fill_mask import MaskFiller
from bert_tf.serving.signatures import LOST_MASKS, MOST_MASKS
from bert_tf.tasks.base.declaration import (
    PRETRAINING_METRIC_TYPES,
    PretrainedTaskDeclaration,
    TaskCard,
)
from bert_tf.tasks.base.task import PretrainedTask
from bert_tf.tasks.fill_mask.declaration import FILL_MASK, MASK, FillMaskConfig
from bert_tf.weights.model_directory import ModelDirectory

_HEAD = "cls.predictions.transform.dense.weight"


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskColumns:
    text: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class FillMaskTask(PretrainedTask):
    """Fills masks (Devlin et al. 2019, section 3.1, task 1)."""

    declaration: ClassVar[PretrainedTaskDeclaration] = FILL_MASK

    columns: MaskColumns
    max_seq_length: int
    top_k: int

    @classmethod
    def of_pretrained(cls, directory: ModelDirectory, config: FillMaskConfig) -> Self:
        if _HEAD not in directory.tensors:
            raise UsageError(
                f"--task {FILL_MASK.name}: {directory.path} has no masked-LM head, which predicts "
                f"masked tokens; take a run of bert-pipeline train, or a HuggingFace folder of "
                "BertForMaskedLM or BertForPreTraining"
            )
        if config.top_k > directory.config.vocab_size:
            raise UsageError(
                f"--top-k {config.top_k}: the vocabulary of {directory.path} has "
                f"{directory.config.vocab_size} entries; use at most that"
            )
        return cls(
            columns=MaskColumns(text="text"),
            max_seq_length=directory.config.max_position_embeddings,
            top_k=config.top_k,
        )

    def build_model(self, config: BertConfig, *, policy: str) -> BertMaskedLM:
        return BertMaskedLM(config, dtype=policy, name="fill_mask")

    def serving_module(self, model: Any, tokenizer: WordPieceTokenizer) -> MaskFiller:
        return MaskFiller(model, tokenizer, max_seq_length=self.max_seq_length, top_k=self.top_k)

    def sequence_outputs(self, model: Any, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return {"logits": model(batch, training=False)}

    def card(self) -> TaskCard:
        return TaskCard(
            title="Masked language model",
            facts=(
                f"reads the column `{self.columns.text}`, and predicts each `{MASK}` in it",
                f"the {self.top_k} most likely tokens for each mask, with probabilities over the "
                "whole vocabulary; `##` begins a token that continues a word",
                f"in a text longer than {self.max_seq_length} tokens, those around each mask are "
                "read",
                f"the first {MOST_MASKS} masks of a text are predicted; `{LOST_MASKS}` counts the "
                "others",
            ),
            example={"text": f"Rome is the {MASK} of Italy."},
            signature_output="predicted_tokens",
            transformers_class="AutoModelForMaskedLM",
            pipeline_tag="fill-mask",
            metric_types=PRETRAINING_METRIC_TYPES,
            google_script="run_pretraining.py",
            script_reads_text=False,
            limits=(
                "The model completes texts as its pretraining corpus would, including its biases; "
                "a likely token is not a fact."
            ),
        )
