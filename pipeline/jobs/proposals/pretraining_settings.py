"""The settings that `init pretrain` proposes beside those that the user has set, and why."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.base.errors import ConfigError, UsageError
from bert_tf.base.wording import quantity
from bert_tf.config.bert import SIZES, sized_config
from bert_tf.config.resolve import resolve
from bert_tf.config.section import Section
from bert_tf.config.sections import PreprocessConfig, TrainConfig, VocabConfig
from bert_tf.config.sections.data import CorpusSection
from pipeline.jobs.proposals.corpus_facts import CorpusFacts
from pipeline.proposal.pretraining_recipe import (
    EPOCHS,
    LENGTH,
    MOST_STEPS,
    TOKENS_PER_WEIGHT,
    VOCAB_SIZES,
    PretrainingRecipe,
    choose_length,
    choose_recipe,
    choose_size,
    largest_batch,
    passes_over,
    shape_line,
)

SECTIONS: dict[str, type[Section]] = {
    "vocab": VocabConfig,
    "preprocess": PreprocessConfig,
    "train": TrainConfig,
}
_SENTENCES_OF_PAIRS = 2  # of half of the documents, for next sentences to be told apart
_SHARED = frozenset(field.name for field in dataclasses.fields(CorpusSection)) | {
    "lowercase",
    "keep_accents",
}


def given_settings(
    source: str, target: Path, assignments: tuple[str, ...]
) -> dict[str, dict[str, Any]]:
    """Returns the keys of each section that are required or set by `section.key=value` texts.

    Names outputs after `target`, the config file. Raises ConfigError for wrong keys or values.
    """
    stem = target.with_suffix("")
    names: dict[str, list[str]] = {name: [] for name in SECTIONS}
    shared = []
    for text in assignments:
        section, _, rest = text.partition(".")
        if section not in SECTIONS:
            expected = ", ".join(SECTIONS)
            raise ConfigError([f"--set {text}: init pretrain sets keys of {expected}"])
        key = rest.partition("=")[0]
        is_shared = section != "train" and key in _SHARED
        for name in ("vocab", "preprocess") if is_shared else (section,):
            names[name].append(key)
            shared.append(f"{name}.{rest}")
    corpus = {"input": (source,)}
    required: dict[str, dict[str, Any]] = {
        "vocab": {**corpus, "output": f"{stem}-vocab.txt"},
        "preprocess": {**corpus, "vocab": f"{stem}-vocab.txt", "output": f"{stem}-data"},
        "train": {"data": f"{stem}-data", "output": f"{stem}-run", "size": "tiny"},
    }
    found = {}
    for name, section_type in SECTIONS.items():
        flags = {key: value for key, value in required[name].items() if key not in names[name]}
        values = resolve(section_type, assignments=tuple(shared), flags=flags).as_dict()
        kept = {key: values[key] for key in names[name]}
        found[name] = {**flags, **kept}
        if name == "train" and "size" not in names[name]:
            del found[name]["size"]
    return found


def propose_settings(
    given: Mapping[str, Mapping[str, Any]], found: Mapping[str, Any], facts: CorpusFacts
) -> tuple[dict[str, dict[str, Any]], PretrainingRecipe]:
    """Returns the values of all sections, and the recipe of those that the user has not set.

    `given` holds the keys that are set by section, `found` those that the corpus decides for both
    data jobs. Raises UsageError if a model is given, which leaves nothing to propose.
    """
    is_paired = float(np.median(facts.document_sentences)) >= _SENTENCES_OF_PAIRS
    vocab_size = given["vocab"].get("vocab_size", facts.vocab_size)
    recipe = choose_recipe(
        given["train"].get("size") or choose_size(facts.tokens, vocab_size),
        tokens=facts.tokens,
        max_seq_length=given["preprocess"].get("max_seq_length")
        or (choose_length(facts.document_tokens) if is_paired else LENGTH),
        batch_size=given["train"].get("batch_size"),
        steps=given["train"].get("steps"),
    )
    pairs = {} if is_paired else {"pair_task": "none"}
    proposed: dict[str, dict[str, Any]] = {
        "vocab": {**found, "vocab_size": vocab_size},
        "preprocess": {
            **found,
            "max_seq_length": recipe.max_seq_length,
            "max_predictions_per_seq": recipe.max_predictions_per_seq,
            "masking": "dynamic",
            **pairs,
        },
        "train": {
            key: getattr(recipe, key)
            for key in ("size", "batch_size", "learning_rate", "steps", "eval_every")
        },
    }
    settings = {
        name: {**given[name], **{k: v for k, v in values.items() if k not in given[name]}}
        for name, values in proposed.items()
    }
    if {"model_config", "init"} & settings["train"].keys():
        raise UsageError(
            "init pretrain proposes a size; leave out train.model_config and train.init, and put "
            "them into the file that is written"
        )
    return settings, recipe


def setting_reasons(
    facts: CorpusFacts, recipe: PretrainingRecipe, settings: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, str]]:
    """Returns a comment for each proposed setting, by section."""
    common = {
        "encoding": "a guess: the first file is not UTF-8",
        "duplicates": f"{quantity(facts.duplicates, 'document')} equal to an earlier one, "
        f"{facts.similar:.1%} of the others resemble another",
    }
    return {
        "vocab": {
            **common,
            "vocab_size": "95% of the entries occur 100 times or more"
            if facts.vocab_size > VOCAB_SIZES[-1]
            else "the smallest; of a larger one too few entries occur 100 times",
        },
        "preprocess": {
            **common,
            "max_seq_length": "as in 90% of BERT's steps"
            if recipe.max_seq_length == LENGTH
            else "99% of the documents are no longer",
            "max_predictions_per_seq": "15% of the tokens",
            "masking": "other masks in every epoch, drawn by train",
            "pair_task": "documents of one sentence have no next ones",
        },
        "train": _train_reasons(facts, recipe, settings["vocab"]["vocab_size"]),
    }


def _train_reasons(
    facts: CorpusFacts, recipe: PretrainingRecipe, vocab_size: int
) -> dict[str, str]:
    model = sized_config(recipe.size, vocab_size)
    rule = f"{TOKENS_PER_WEIGHT} tokens for each in {EPOCHS} epochs"
    is_enough = TOKENS_PER_WEIGHT * model.encoder_parameters <= EPOCHS * facts.tokens
    epochs = passes_over(
        facts.tokens,
        steps=recipe.steps,
        batch_size=recipe.batch_size,
        max_seq_length=recipe.max_seq_length,
    )
    read = f"reads the text about {epochs:,.0f} times, BERT {EPOCHS} times"
    width = f"for models {SIZES[recipe.size]['hidden_size']} wide"
    return {
        "size": f"{shape_line(model)}; "
        + (
            f"the largest with {rule}" if is_enough else f"the smallest; too little text for {rule}"
        ),
        "batch_size": width
        if recipe.batch_size >= largest_batch(recipe.size)
        else "smaller for little text, for 10,000 steps",
        "learning_rate": width,
        "steps": f"as many as BERT; {read}" if recipe.steps >= MOST_STEPS else read,
        "eval_every": f"about {quantity(round(recipe.steps / recipe.eval_every), 'evaluation')}",
    }
