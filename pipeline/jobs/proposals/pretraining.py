"""`init pretrain`: from a corpus to a commented config for `vocab`, `preprocess` and `train`."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.base.atomic_files import write_text_atomically
from bert_tf.base.console import Console
from bert_tf.base.errors import ConfigError, UsageError
from bert_tf.base.wording import quantity, shown_duration
from bert_tf.config.bert import SIZES, sized_config
from bert_tf.config.resolve import resolve
from bert_tf.config.section import Section, build_section
from bert_tf.config.sections import PreprocessConfig, TrainConfig, VocabConfig
from bert_tf.config.sections.data import CorpusSection
from bert_tf.data.tables.file_names import name_without_compression
from pipeline.beam.files import match_files
from pipeline.jobs.proposals.corpus_facts import CorpusFacts, facts_lines, look_at_corpus
from pipeline.proposal.config_text import commented_yaml
from pipeline.proposal.encoding import likely_encoding
from pipeline.proposal.pretraining_recipe import (
    EPOCHS,
    LENGTH,
    TOKENS_PER_WEIGHT,
    PretrainingRecipe,
    choose_length,
    choose_recipe,
    choose_size,
    passes_over,
    shape_line,
)

if TYPE_CHECKING:
    from bert_tf.pretraining.step_rate import MeasuredRate

MEASURED_SECONDS = 2.0
_FEW_WORDS = 1_000_000
_MANY_SIMILAR = 0.01  # of the documents
_SENTENCES_OF_PAIRS = 2  # of half of the documents, for next sentences to be told apart
_LONG_SECONDS = 24 * 3600
_SECTIONS: dict[str, type[Section]] = {
    "vocab": VocabConfig,
    "preprocess": PreprocessConfig,
    "train": TrainConfig,
}
_SHARED = frozenset(field.name for field in dataclasses.fields(CorpusSection)) | {"lowercase"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainingProposal:
    """What `init pretrain` saw and chose.

    Attributes:
        config: the file that was written.
        settings: its values by section and key.
        documents, words, tokens: of the corpus; estimates, unless `is_whole`.
        is_whole: whether all of the corpus was read.
        duplicates: documents of what was read that are equal to an earlier one.
        seconds_per_step: measured on this machine.
        seconds: estimated for the start and all steps of `train`.
        next: command lines that run it.
    """

    config: str
    settings: Mapping[str, Mapping[str, Any]]
    documents: int
    words: int
    tokens: int
    is_whole: bool
    duplicates: int
    seconds_per_step: float
    seconds: float
    next: Sequence[str]


def propose_pretraining(
    source: str,
    *,
    output: str | None = None,
    assignments: tuple[str, ...] = (),
    overwrite: bool = False,
    console: Console,
    measured_seconds: float = MEASURED_SECONDS,
) -> PretrainingProposal:
    """Looks at a corpus and writes a config to make records of it and pretrain on them.

    Args:
        source: a file or a glob.
        output: YAML file to write; by default named after the first file.
        assignments: `section.key=value` texts of the sections `vocab`, `preprocess` and `train`,
            kept as they are. A key that both data jobs have holds for both.
        overwrite: whether a file of that name may be replaced.
        console: where it says what it sees.
        measured_seconds: how long training steps are timed.

    Raises:
        UsageError: no such file; a key is unknown; the file to write exists.
        InputError: the corpus has no text.
    """
    files = match_files((source,))
    target = Path(output or f"{_stem(source)}-pretrain.yaml")
    if target.exists() and not overwrite:
        raise UsageError(f"{target}: exists; name another file with --output, or give --overwrite")
    given = _given(source, target, assignments)
    console.info(f"{source}: looking at {quantity(len(files), 'file')}")
    encoding = str(given["preprocess"].get("encoding") or _encoding(files[0].path))
    found: dict[str, Any] = {} if encoding == "utf-8" else {"encoding": encoding}
    corpus = build_section(PreprocessConfig, {**given["preprocess"], **found})
    facts = look_at_corpus(corpus, files)
    if facts.duplicates or facts.similar > _MANY_SIMILAR:
        found["duplicates"] = "near" if facts.similar > _MANY_SIMILAR else "exact"
    for line in facts_lines(facts, files, encoding):
        console.info(line)
    settings, recipe = _settings(given, found, facts)
    train = build_section(TrainConfig, settings["train"])
    preprocess = build_section(PreprocessConfig, settings["preprocess"])
    console.info("  timing training steps")
    measured = _measured(train, preprocess, settings["vocab"]["vocab_size"], measured_seconds)
    seconds = measured.start_seconds + train.steps * measured.seconds
    if train.max_minutes:
        seconds = min(seconds, 60 * train.max_minutes)
    time_line = (
        f"{shown_duration(seconds)} for {quantity(train.steps, 'step')} of "
        f"{measured.seconds:.2f} s ({measured.precision}; {quantity(measured.count, 'step')} timed)"
    )
    console.info(f"  model       {recipe.size}: {_shape(recipe.size, facts)}")
    console.info(f"  time here   {time_line}")
    _advise(facts, seconds, console)
    commands = [shlex.join(["bert-pipeline", name, "--config", str(target)]) for name in _SECTIONS]
    heading = (
        *commands,
        f"For {source}, about {quantity(facts.words, 'word')}:",
        f"{time_line}.",
    )
    reasons = _reasons(facts, recipe, train)
    texts = [
        commented_yaml(
            name,
            settings[name],
            reasons={key: why for key, why in reasons[name].items() if key not in given[name]},
            heading=heading if name == "vocab" else (),
            hints=(f"All keys: bert-pipeline {name} --help-all",),
        )
        for name in _SECTIONS
    ]
    write_text_atomically(target, "".join(texts))
    console.info(f"wrote {target}; next:")
    for command in commands:
        console.info(f"  {command}")
    return PretrainingProposal(
        config=str(target),
        settings=settings,
        documents=facts.documents,
        words=facts.words,
        tokens=facts.tokens,
        is_whole=facts.sample.is_whole,
        duplicates=facts.duplicates,
        seconds_per_step=measured.seconds,
        seconds=seconds,
        next=commands,
    )


def _advise(facts: CorpusFacts, seconds: float, console: Console) -> None:
    if seconds > _LONG_SECONDS:
        console.info(
            "              shorter: --set train.size=…, a smaller one; --set train.max_minutes=…, "
            "as much as that allows; or a machine with a GPU"
        )
    if facts.words < _FEW_WORDS:
        console.warn(
            f"about {quantity(facts.words, 'word')} are too few to learn a language from: fine-"
            "tune an existing model, or train one further on this text (train --init MODEL)"
        )


def _stem(source: str) -> str:
    """What files are named after: the file, or the folder of a glob."""
    name = name_without_compression(Path(source).name)
    if any(character in name for character in "*?["):
        return Path(source).parent.name or "corpus"
    return name.rpartition(".")[0] or name


def _encoding(path: str) -> str:
    return likely_encoding(path) if Path(path).is_file() else "utf-8"


def _given(source: str, target: Path, assignments: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """What each section must have, with the keys that the user has set.

    Raises:
        ConfigError: a key is unknown, of another section, or its value is none it may have.
    """
    stem = target.with_suffix("")
    names: dict[str, list[str]] = {name: [] for name in _SECTIONS}
    shared = []
    for text in assignments:
        section, _, rest = text.partition(".")
        if section not in _SECTIONS:
            expected = ", ".join(_SECTIONS)
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
    for name, section_type in _SECTIONS.items():
        flags = {key: value for key, value in required[name].items() if key not in names[name]}
        values = resolve(section_type, assignments=tuple(shared), flags=flags).as_dict()
        kept = {key: values[key] for key in names[name]}
        found[name] = {**flags, **kept}
        if name == "train" and "size" not in names[name]:
            del found[name]["size"]
    return found


def _settings(
    given: Mapping[str, Mapping[str, Any]], found: Mapping[str, Any], facts: CorpusFacts
) -> tuple[dict[str, dict[str, Any]], PretrainingRecipe]:
    """The values of all sections, and the recipe that they are from where the user has set none."""
    is_paired = float(np.median(facts.document_sentences)) >= _SENTENCES_OF_PAIRS
    vocab_size = given["vocab"].get("vocab_size", facts.vocab_size)
    recipe = choose_recipe(
        given["train"].get("size") or choose_size(facts.tokens, vocab_size),
        tokens=facts.tokens,
        max_seq_length=given["preprocess"].get("max_seq_length")
        or (choose_length(facts.document_tokens) if is_paired else LENGTH),
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


def _reasons(
    facts: CorpusFacts, recipe: PretrainingRecipe, train: TrainConfig
) -> dict[str, dict[str, str]]:
    """A comment for each of the settings, by section."""
    epochs = passes_over(
        facts.tokens,
        steps=train.steps,
        batch_size=train.batch_size,
        max_seq_length=recipe.max_seq_length,
    )
    common = {
        "encoding": "a guess: the first file is not UTF-8",
        "duplicates": f"{quantity(facts.duplicates, 'document')} equal to an earlier one, "
        f"{facts.similar:.1%} of the others resemble another",
    }
    return {
        "vocab": {**common, "vocab_size": "95% of the entries occur 100 times or more"},
        "preprocess": {
            **common,
            "max_seq_length": "as in 90% of BERT's steps; less for short documents",
            "max_predictions_per_seq": "15% of the tokens",
            "masking": "other masks in every epoch, drawn by train",
            "pair_task": "documents of one sentence have no next ones",
        },
        "train": {
            "size": f"{_shape(recipe.size, facts)}; the largest with {TOKENS_PER_WEIGHT} tokens "
            f"for each in {EPOCHS} epochs",
            "batch_size": "smaller for little text, for 10,000 steps",
            "learning_rate": f"for models {SIZES[recipe.size]['hidden_size']} wide",
            "steps": f"reads the text about {epochs:,.0f} times, BERT {EPOCHS} times",
            "eval_every": "20 evaluations",
        },
    }


def _shape(size: str, facts: CorpusFacts) -> str:
    return shape_line(sized_config(size, facts.vocab_size))


def _measured(
    train: TrainConfig, preprocess: PreprocessConfig, vocab_size: int, seconds: float
) -> MeasuredRate:
    # Takes seconds to import, during which there is something to read already.
    from bert_tf.pretraining.step_rate import measure_rate
    from bert_tf.pretraining.step_trial import StepShape

    shape = StepShape(
        rows=train.batch_size,
        length=preprocess.max_seq_length,
        predictions=preprocess.max_predictions_per_seq,
    )
    model = train.with_dropout(sized_config(str(train.size), vocab_size))
    return measure_rate(train, model, shape, seconds)
