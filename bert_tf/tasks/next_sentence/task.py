"""Whether a text follows another, by a pretrained model's next-sentence head."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Self

import tensorflow as tf

from bert_tf.config.bert import BertConfig
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.models.heads import BertNextSentence
from bert_tf.serving.graphs.next_sentence import NextSentenceModule
from bert_tf.tasks.base.declaration import (
    PRETRAINING_METRIC_TYPES,
    PretrainedTaskDeclaration,
    TaskCard,
)
from bert_tf.tasks.base.served_task import PretrainedTask
from bert_tf.tasks.next_sentence.declaration import (
    NEXT_SENTENCE,
    PAIR,
    TEXT,
    NextSentenceConfig,
)
from bert_tf.weights.model_directory import ModelDirectory


@dataclasses.dataclass(frozen=True, kw_only=True)
class NextSentenceColumns:
    """Columns of the texts."""

    text: str
    text_pair: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class NextSentenceTask(PretrainedTask):
    """Predicts next sentences (Devlin et al. 2019, section 3.1, task 2)."""

    declaration: ClassVar[PretrainedTaskDeclaration] = NEXT_SENTENCE
    head_tensor: ClassVar[str] = "cls.seq_relationship.weight"
    head: ClassVar[str] = "next-sentence head"
    head_classes: ClassVar[str] = "BertForNextSentencePrediction or BertForPreTraining"

    columns: NextSentenceColumns
    max_seq_length: int

    @classmethod
    def of_pretrained(cls, directory: ModelDirectory, config: NextSentenceConfig) -> Self:
        cls.check_head(directory)
        columns = NextSentenceColumns(text=config.text_column, text_pair=config.text_pair_column)
        return cls(columns=columns, max_seq_length=directory.config.max_position_embeddings)

    def build_model(self, config: BertConfig, *, policy: str) -> BertNextSentence:
        return BertNextSentence(config, dtype=policy, name="next_sentence")

    def sequence_outputs(self, model: Any, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return {"logits": model(batch, training=False)}

    def serving_module(self, model: Any, tokenizer: WordPieceTokenizer) -> NextSentenceModule:
        return NextSentenceModule(model, tokenizer, self.max_seq_length)

    def card(self) -> TaskCard:
        return TaskCard(
            title="Next-sentence prediction",
            facts=(
                f"reads the columns `{self.columns.text}` and `{self.columns.text_pair}`",
                "the probability that the second text follows the first in a document",
                f"a pair longer than {self.max_seq_length} tokens is cut at the ends of its texts",
            ),
            example={TEXT: "It began to rain.", PAIR: "We ran for the bus."},
            signature_output="predicted_score",
            transformers_class="AutoModelForNextSentencePrediction",
            pipeline_tag="text-classification",
            metric_types=PRETRAINING_METRIC_TYPES,
            google_script="run_pretraining.py",
            script_reads_text=False,
            limits=(
                "In pretraining other texts came from other documents, so that the head mostly "
                "tells apart topics: probabilities of sentences of one topic are near 1."
            ),
        )
