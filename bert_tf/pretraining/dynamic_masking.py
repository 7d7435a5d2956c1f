"""The masking rules of the `train` section, for records that are not masked yet."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from bert_tf.base.errors import UsageError
from bert_tf.config.sections.pretraining import TrainConfig
from bert_tf.data.examples.masking import masking_rules
from bert_tf.data.examples.token_counts import read_token_counts
from bert_tf.data.input.dynamic_records import DynamicMasking
from bert_tf.data.records.dataset_info import PretrainingData
from bert_tf.data.text.vocab_file import read_vocab_for_masking

_MASKING_KEYS = ("masking", "masked_lm_prob", "whole_word_mask", "max_ngram_size", "random_tokens")


def dynamic_masking(config: TrainConfig, data: PretrainingData) -> DynamicMasking | None:
    """How the records are to be masked; None where they are masked already.

    A row gets as many targets as `masked_lm_prob` asks for.

    Raises:
        UsageError: masks are set for records that have theirs, or the vocabulary has specials only.
        InputError: the token counts of the corpus are missing.
    """
    if not data.is_dynamic:
        _check_masks_are_unset(config, data)
        return None
    vocab = read_vocab_for_masking(Path(data.directory) / "vocab.txt")
    rules = masking_rules(
        vocab,
        max_seq_length=data.max_seq_length,
        max_predictions_per_seq=data.max_seq_length,
        masked_lm_prob=config.masked_lm_prob,
        whole_word_mask=config.whole_word_mask,
        masking=config.masking,
        max_ngram_size=config.max_ngram_size,
        token_counts=read_token_counts(data.directory, data.vocab_size)
        if config.random_tokens == "unigram"
        else None,
    )
    return DynamicMasking(rules=rules, sep_id=vocab.index("[SEP]"))


def _check_masks_are_unset(config: TrainConfig, data: PretrainingData) -> None:
    defaults = {field.name: field.default for field in dataclasses.fields(config)}
    changed = [name for name in _MASKING_KEYS if getattr(config, name) != defaults[name]]
    if changed:
        raise UsageError(
            f"train.{changed[0]}: the records in {data.directory} are masked already; leave it "
            "out, or preprocess with --set preprocess.masking=dynamic"
        )
