"""`init pretrain`: from a corpus to a commented config for `vocab`, `preprocess` and `train`.

`pretraining_recipe.py` has the rules and their papers.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.base.console import Console
from bert_tf.base.errors import ConfigError, RunnerFailed, UsageError
from bert_tf.base.files import write_text_atomically
from bert_tf.base.gpus import nvidia_gpus
from bert_tf.base.wording import quantity
from bert_tf.config.bert import SIZES, sized_config
from bert_tf.config.resolve import resolve
from bert_tf.config.section import Section, build_section
from bert_tf.config.sections import PreprocessConfig, TrainConfig, VocabConfig
from bert_tf.config.sections.data import CorpusSection
from bert_tf.data.tables.dialect import name_without_compression
from bert_tf.data.tables.text_files import file_encoding
from pipeline.beam.files import FileInfo, match_files
from pipeline.beam.globs import FORMAT_OF_ENDING, glob_of_folder
from pipeline.proposal.config_text import commented_yaml, config_file, time_line
from pipeline.proposal.corpus_facts import CorpusFacts, facts_lines, look_at_corpus
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
    shape_line,
)
from pipeline.report.corpus.language import understand_corpus

if TYPE_CHECKING:
    from bert_tf.pretraining.step_trial import TriedStep

SECTIONS: dict[str, type[Section]] = {
    "vocab": VocabConfig,
    "preprocess": PreprocessConfig,
    "train": TrainConfig,
}
_MEASURED_SECONDS = 2.0  # of training steps
_TRIAL_FLOPS = 1e11  # of a step that is timed: half a second at 200 GFLOP/s
_FEW_WORDS = 1_000_000  # too few to pretrain from scratch
_MANY_SIMILAR = 0.01  # of the documents: more are worth dropping near duplicates
_LONG_SECONDS = 24 * 3600  # of a run: longer ones get advice
_SENTENCES_OF_PAIRS = 2  # in half of the documents, at least, for next-sentence prediction
# Keys of both data jobs.
_SHARED = {
    "lowercase",
    "keep_accents",
    *(field.name for field in dataclasses.fields(CorpusSection)),
}


def given_settings(
    source: str, target: Path, assignments: tuple[str, ...]
) -> dict[str, dict[str, Any]]:
    """Return the keys that are required or set by the user, by section.

    Args:
        source: path or glob of the corpus.
        target: the config file, whose name outputs begin with.
        assignments: `section.key=value` texts; a key of both data jobs is set for both.

    Returns:
        Values by key, for each of the sections.

    Raises:
        ConfigError: a key or value is wrong.
    """
    stem = target.with_suffix("")
    names: dict[str, list[str]] = {name: [] for name in SECTIONS}
    all_assignments: list[str] = []
    for text in assignments:
        owner, _, rest = text.partition(".")
        if owner not in SECTIONS:
            expected = ", ".join(SECTIONS)
            raise ConfigError([f"--set {text}: init pretrain sets keys of {expected}"])
        key = rest.partition("=")[0]
        is_shared = owner != "train" and key in _SHARED
        owners = ("vocab", "preprocess") if is_shared else (owner,)
        for name in owners:
            names[name].append(key)
            all_assignments.append(f"{name}.{rest}")
    corpus = {"input": (source,)}
    required: dict[str, dict[str, Any]] = {
        "vocab": {**corpus, "output": f"{stem}-vocab.txt"},
        "preprocess": {**corpus, "vocab": f"{stem}-vocab.txt", "output": f"{stem}-data"},
        "train": {"data": f"{stem}-data", "output": f"{stem}-run", "size": "tiny"},
    }
    by_section = {}
    for name, section_type in SECTIONS.items():
        flags = {key: value for key, value in required[name].items() if key not in names[name]}
        section = resolve(section_type, assignments=tuple(all_assignments), flags=flags)
        values = section.as_dict()
        kept = {key: values[key] for key in names[name]}
        by_section[name] = {**flags, **kept}
        if name == "train" and "size" not in names[name]:
            del by_section[name]["size"]
    return by_section


def propose_settings(
    user_settings: Mapping[str, Mapping[str, Any]], seen: Mapping[str, Any], facts: CorpusFacts
) -> tuple[dict[str, dict[str, Any]], PretrainingRecipe]:
    """Choose the settings of all sections.

    Args:
        user_settings: values of the user by section, which are kept.
        seen: keys of both data jobs that the corpus decides.
        facts: the corpus.

    Returns:
        The values of all sections, and the recipe in them.

    Raises:
        UsageError: the user names a model, for which no size can be proposed.
    """
    is_paired = float(np.median(facts.document_sentences)) >= _SENTENCES_OF_PAIRS
    is_paired &= facts.documents > 1  # a random sentence is of another document
    vocab_size = user_settings["vocab"].get("vocab_size", facts.vocab_size)
    user_train = user_settings["train"]
    # Without pairs, sequences are filled from several documents, no matter how short they are.
    length = choose_length(facts.document_tokens) if is_paired else LENGTH
    recipe = choose_recipe(
        user_train.get("size") or choose_size(facts.tokens, vocab_size),
        tokens=facts.tokens,
        max_seq_length=user_settings["preprocess"].get("max_seq_length") or length,
        batch_size=user_train.get("batch_size"),
        steps=user_train.get("steps"),
    )
    proposed: dict[str, dict[str, Any]] = {
        "vocab": {**seen, "vocab_size": vocab_size},
        "preprocess": {
            **seen,
            "max_seq_length": recipe.max_seq_length,
            "max_predictions_per_seq": recipe.max_predictions_per_seq,
            "masking": "dynamic",
        },
        "train": {
            key: getattr(recipe, key)
            for key in ("size", "batch_size", "learning_rate", "steps", "eval_every")
        },
    }
    if not is_paired:
        proposed["preprocess"]["pair_task"] = "none"
    if nvidia_gpus():
        # With dropout of attention, GPUs write all scores to memory: cuDNN's fused kernels have no
        # dropout that a resumed run could repeat. MosaicBERT and ModernBERT train without it, too.
        proposed["train"]["attention_probs_dropout_prob"] = 0.0
    settings = {}
    for name, values in proposed.items():
        own = user_settings[name]
        others = {key: value for key, value in values.items() if key not in own}
        settings[name] = {**own, **others}
    if {"model_config", "init"} & settings["train"].keys():
        raise UsageError(
            "init pretrain proposes a size; leave out train.model_config and train.init, and put "
            "them into the file that is written"
        )
    return settings, recipe


def setting_reasons(
    facts: CorpusFacts, recipe: PretrainingRecipe, settings: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, str]]:
    """Return a comment on each proposed setting, by section."""
    common = {
        "encoding": "a guess: the first file is not UTF-8",
        "duplicates": f"{quantity(facts.duplicates, 'document')} equal to an earlier one, "
        f"{facts.similar:.1%} of the others resemble another",
    }
    of_vocab_size = "the smallest; in a larger one, too few entries occur 100 times"
    if facts.vocab_size > VOCAB_SIZES[-1]:
        of_vocab_size = "95% of the entries occur 100 times or more"
    of_length = "99% of the documents are not longer"
    if recipe.max_seq_length == LENGTH:
        of_length = "as in 90% of BERT's steps"
    of_pair_task = "random sentences need another document"
    if facts.documents > 1:
        of_pair_task = "documents with one sentence have no next sentence"
    return {
        "vocab": {**common, "vocab_size": of_vocab_size},
        "preprocess": {
            **common,
            "max_seq_length": of_length,
            "max_predictions_per_seq": "15% of the tokens",
            "masking": "train draws new masks every epoch",
            "pair_task": of_pair_task,
        },
        "train": _train_reasons(facts, recipe, settings["vocab"]["vocab_size"]),
    }


def _train_reasons(
    facts: CorpusFacts, recipe: PretrainingRecipe, vocab_size: int
) -> dict[str, str]:
    """Return a comment on each setting of `train`."""
    model = sized_config(recipe.size, vocab_size)
    rule = f"{TOKENS_PER_WEIGHT} tokens for each in {EPOCHS} epochs"
    is_enough = TOKENS_PER_WEIGHT * model.encoder_parameters <= EPOCHS * facts.tokens
    epochs = recipe.passes_over(facts.tokens)
    read = f"reads the text about {epochs:,.0f} times, BERT {EPOCHS} times"
    width = f"for models {SIZES[recipe.size]['hidden_size']} wide"
    of_size = f"the smallest; too little text for {rule}"
    if is_enough:
        of_size = f"the largest with {rule}"
    of_batch = "smaller for little text, for 10,000 steps"
    if recipe.batch_size >= largest_batch(recipe.size):
        of_batch = width
    return {
        "size": f"{shape_line(model)}; {of_size}",
        "batch_size": of_batch,
        "learning_rate": width,
        "steps": f"as many as BERT; {read}" if recipe.steps >= MOST_STEPS else read,
        "attention_probs_dropout_prob": "so that GPUs compute attention by fused kernels",
        "eval_every": f"about {quantity(round(recipe.steps / recipe.eval_every), 'evaluation')}",
    }


def propose_pretraining(
    source: str,
    *,
    output: str | None = None,
    assignments: tuple[str, ...] = (),
    overwrite: bool = False,
    console: Console,
) -> dict[str, Any]:
    """Inspect a corpus and write a config to make records of it and pretrain on them.

    Args:
        source: path or quoted glob of the corpus.
        output: the config to write; named after the first file of the corpus by default.
        assignments: `section.key=value` texts of `vocab`, `preprocess` and `train`, which are kept;
            a key of both data jobs is set for both.
        overwrite: whether to replace the config.
        console: for the findings.

    Returns:
        Path and settings of the config, and the facts behind them: amounts are estimates unless
            `is_whole`, `duplicates` are documents of the sample that equal an earlier one,
            `seconds` are estimated for all of `train`; `next` are the command lines to run.

    Raises:
        UsageError: no such file; a key is unknown; the file to write exists.
        InputError: the corpus has no text.
    """
    place = source.rstrip("/") or source
    texts_inside = glob_of_folder(place, FORMAT_OF_ENDING) if Path(place).is_dir() else None
    if texts_inside is not None:
        console.info(f"{source}: is a folder; reading {texts_inside}")
        source = texts_inside
    files = match_files((source,))
    target = config_file(output or f"{_stem(source)}-pretrain.yaml", overwrite=overwrite)
    user_settings = given_settings(source, target, assignments)
    console.info(f"{source}: looking at {quantity(len(files), 'file')}")
    facts, seen = _look(files, user_settings["preprocess"], console)
    settings, recipe = propose_settings(user_settings, seen, facts)
    seconds, measured, time = _estimate(settings, console)
    shape = shape_line(sized_config(recipe.size, settings["vocab"]["vocab_size"]))
    console.info(f"  model       {recipe.size}: {shape}")
    console.info(f"  time here   {time}")
    _advise(facts, seconds, console)
    commands = [shlex.join(["bert-pipeline", name, "--config", str(target)]) for name in SECTIONS]
    about = f"For {source}, {facts.about}{quantity(facts.words, 'word')}:"
    reasons = setting_reasons(facts, recipe, settings)
    text = ""
    heading: tuple[str, ...] = (*commands, about, f"{time}.")
    for name in SECTIONS:
        own = user_settings[name]
        text += commented_yaml(
            name,
            settings[name],
            reasons={key: reason for key, reason in reasons[name].items() if key not in own},
            heading=heading,
            hints=(f"All keys: bert-pipeline {name} --help-all",),
        )
        heading = ()  # only above the first section
    write_text_atomically(target, text)
    console.info(f"wrote {target}; next:", *(f"  {command}" for command in commands))
    return {
        "config": str(target),
        "settings": settings,
        "documents": facts.documents,
        "words": facts.words,
        "tokens": facts.tokens,
        "is_whole": facts.sample.is_whole,
        "duplicates": facts.duplicates,
        "seconds_per_step": measured.seconds,
        "seconds": seconds,
        "next": commands,
    }


def _look(
    files: list[FileInfo], settings: Mapping[str, Any], console: Console
) -> tuple[CorpusFacts, dict[str, Any]]:
    """Survey a corpus.

    Args:
        files: of the corpus.
        settings: of `preprocess`, those of the user.
        console: for the findings.

    Returns:
        The facts, and the settings of both data jobs that follow from the corpus.
    """
    guess = file_encoding(files[0].path) if Path(files[0].path).is_file() else None
    encoding = str(settings.get("encoding") or guess or "utf-8")
    seen: dict[str, Any] = {} if encoding == "utf-8" else {"encoding": encoding}
    config = build_section(PreprocessConfig, {**settings, **seen})
    corpus = understand_corpus(config, files)
    facts = look_at_corpus(config, files, corpus.layouts)
    if facts.duplicates or facts.similar > _MANY_SIMILAR:
        seen["duplicates"] = "near" if facts.similar > _MANY_SIMILAR else "exact"
    console.info(*facts_lines(facts, files, encoding), f"  read as     {corpus.reading}")
    console.info(*corpus.first)
    for warning in corpus.warnings:
        console.warn(warning)
    return facts, seen


def _advise(facts: CorpusFacts, seconds: float, console: Console) -> None:
    """Give advice if the run is long, or the text too little."""
    if seconds > _LONG_SECONDS:
        console.info(
            "              to shorten it: a smaller --set train.size=…, a time budget (--set "
            "train.max_minutes=…), or a GPU"
        )
    if facts.words < _FEW_WORDS:
        console.warn(
            f"about {quantity(facts.words, 'word')} are too few to pretrain from scratch: "
            "fine-tune an existing model, or continue pretraining one on this text (train --init "
            "MODEL)"
        )


def _stem(source: str) -> str:
    """Return the name that outputs begin with: of the file, or of the folder of a glob."""
    name = name_without_compression(Path(source).name)
    if any(character in name for character in "*?["):
        return Path(source).parent.name or "corpus"
    return name.rpartition(".")[0] or name


def _estimate(
    settings: Mapping[str, dict[str, Any]], console: Console
) -> tuple[float, TriedStep, str]:
    """Time training steps of a part of the batch, and extrapolate to the whole run.

    Returns:
        Seconds of the run, a step of the whole batch, and a line with both.

    Raises:
        RunnerFailed: not even the part fits into memory.
    """
    train = build_section(TrainConfig, settings["train"])
    preprocess = build_section(PreprocessConfig, settings["preprocess"])
    console.info("  timing training steps")
    # Imported after the first findings are shown, since it takes seconds.
    from bert_tf.pretraining.step_trial import StepShape, try_steps
    from bert_tf.training.arithmetic import BatchRows, expected_arithmetic

    shape = StepShape(
        rows=train.batch_size,
        length=preprocess.max_seq_length,
        predictions=preprocess.max_predictions_per_seq,
    )
    model = train.with_dropout(sized_config(str(train.size), settings["vocab"]["vocab_size"]))
    part = shape.part(model, _TRIAL_FLOPS)
    rows = [BatchRows(batch=part.rows)]
    arithmetic = expected_arithmetic(train, rows, console=Console(quiet=True))
    (tried,) = try_steps([arithmetic], model, part, seconds=_MEASURED_SECONDS)
    if tried is None:
        raise RunnerFailed(
            f"{quantity(part.rows, 'row')} do not fit into the memory; set a smaller train.size"
        )
    whole = dataclasses.replace(tried, seconds=tried.seconds * shape.rows / part.rows)
    seconds = whole.start_seconds + train.steps * whole.seconds
    if train.max_minutes:
        seconds = min(seconds, 60 * train.max_minutes)
    precision = arithmetic.precision.policy.removeprefix("mixed_")
    return seconds, whole, time_line(seconds, train.steps, whole, precision)
