"""The most likely tokens for the masks of a text, by a pretrained model's masked-LM head."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Self

from bert_tf.base.errors import UsageError
from bert_tf.data.rows.candidate_words import MOST_TOKENS, read_words
from bert_tf.data.text.host_wordpiece import HostTokenizer
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.serving.graphs.fill_mask import MaskFiller
from bert_tf.serving.signatures import LOST_MASKS, MOST_MASKS
from bert_tf.tasks.base.declaration import (
    PRETRAINING_METRIC_TYPES,
    PretrainedTaskDeclaration,
    TaskCard,
)
from bert_tf.tasks.base.host_task import kept_if_set
from bert_tf.tasks.base.served_task import MaskedLMTask
from bert_tf.tasks.fill_mask.declaration import FILL_MASK, MASK, FillMaskConfig
from bert_tf.weights.model_directory import ModelDirectory


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskColumns:
    """Names of the columns of a table, as `task.json` has them."""

    text: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class FillMaskTask(MaskedLMTask):
    """Fills masks (Devlin et al. 2019, section 3.1, task 1)."""

    declaration: ClassVar[PretrainedTaskDeclaration] = FILL_MASK

    columns: MaskColumns
    max_seq_length: int
    top_k: int
    candidates: tuple[str, ...] = kept_if_set(())  # words to choose from; () for the vocabulary

    @classmethod
    def of_pretrained(cls, directory: ModelDirectory, config: FillMaskConfig) -> Self:
        cls.check_head(directory)
        source = f"the vocabulary of {directory.path}"
        number = directory.config.vocab_size
        words: tuple[str, ...] = ()
        if config.candidates is not None:
            tokenizer = HostTokenizer(directory.vocab, lowercase=directory.lowercase)
            words = read_words(
                config.candidates,
                tokenizer,
                unk_id=tokenizer.unk_id,
                most_tokens=min(MOST_TOKENS, directory.config.max_position_embeddings - 2),
            )
            source = config.candidates
            number = len(words)
        if config.top_k > number:
            raise UsageError(
                f"--top-k {config.top_k}: {source} has {number} entries; use at most that"
            )
        return cls(
            columns=MaskColumns(text="text"),
            max_seq_length=directory.config.max_position_embeddings,
            top_k=config.top_k,
            candidates=words,
        )

    def serving_module(self, model: Any, tokenizer: WordPieceTokenizer) -> MaskFiller:
        return MaskFiller(
            model,
            tokenizer,
            max_seq_length=self.max_seq_length,
            top_k=self.top_k,
            candidates=self.candidates,
        )

    def card(self) -> TaskCard:
        chosen = (
            f"the {self.top_k} most likely tokens for each mask, with probabilities over the "
            "whole vocabulary; `##` begins a token that continues a word"
        )
        if self.candidates:
            chosen = (
                f"the {self.top_k} most likely of {len(self.candidates):,} words for each mask; "
                "the score of a word is the product of the probabilities of its tokens, in a text "
                "with as many masks"
            )
        return TaskCard(
            title="Masked language model",
            facts=(
                f"reads the column `{self.columns.text}`, and predicts each `{MASK}` in it",
                chosen,
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
