"""`init pretrain`: from a corpus to a commented config for `vocab`, `preprocess` and `train`."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bert_tf.base.console import Console
from bert_tf.base.errors import RunnerFailed
from bert_tf.base.files import write_text_atomically
from bert_tf.base.wording import quantity
from bert_tf.config.bert import sized_config
from bert_tf.config.section import build_section
from bert_tf.config.sections import PreprocessConfig, TrainConfig
from bert_tf.data.tables.dialect import name_without_compression
from bert_tf.data.tables.text_files import file_encoding
from pipeline.beam.files import match_files
from pipeline.jobs.proposals.corpus_facts import CorpusFacts, facts_lines, look_at_corpus
from pipeline.jobs.proposals.pretraining_settings import (
    SECTIONS,
    given_settings,
    propose_settings,
    setting_reasons,
)
from pipeline.proposal.config_text import commented_yaml, config_file, time_line
from pipeline.proposal.pretraining_recipe import shape_line

if TYPE_CHECKING:
    from bert_tf.pretraining.step_trial import TriedStep

MEASURED_SECONDS = 2.0
_TRIAL_FLOPS = 1e11  # of a step that is timed: half a second at 200 GFLOP/s
_FEW_WORDS = 1_000_000
_MANY_SIMILAR = 0.01  # of the documents
_LONG_SECONDS = 24 * 3600


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainingProposal:
    """Configs that `init pretrain` proposed; `next` are the command lines that run them.

    `documents`, `words` and `tokens` are estimates unless `is_whole`. `duplicates` are documents of
    the sample that equal an earlier one. `seconds` are estimated for all of `train`.
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

    Names the file after the corpus's first file by default. Keeps `section.key=value` assignments
    of `vocab`, `preprocess` and `train`; a key of both data jobs holds for both.

    Raises:
        UsageError: no such file; a key is unknown; the file to write exists.
        InputError: the corpus has no text.
    """
    files = match_files((source,))
    target = config_file(output or f"{_stem(source)}-pretrain.yaml", overwrite=overwrite)
    given = given_settings(source, target, assignments)
    console.info(f"{source}: looking at {quantity(len(files), 'file')}")
    encoding = str(given["preprocess"].get("encoding") or _encoding(files[0].path))
    found: dict[str, Any] = {} if encoding == "utf-8" else {"encoding": encoding}
    corpus = build_section(PreprocessConfig, {**given["preprocess"], **found})
    facts = look_at_corpus(corpus, files)
    if facts.duplicates or facts.similar > _MANY_SIMILAR:
        found["duplicates"] = "near" if facts.similar > _MANY_SIMILAR else "exact"
    for line in facts_lines(facts, files, encoding):
        console.info(line)
    settings, recipe = propose_settings(given, found, facts)
    train = build_section(TrainConfig, settings["train"])
    preprocess = build_section(PreprocessConfig, settings["preprocess"])
    vocab_size = settings["vocab"]["vocab_size"]
    console.info("  timing training steps")
    measured, precision = _measured(train, preprocess, vocab_size, measured_seconds)
    seconds = measured.start_seconds + train.steps * measured.seconds
    if train.max_minutes:
        seconds = min(seconds, 60 * train.max_minutes)
    time = time_line(
        seconds,
        train.steps,
        step_seconds=measured.seconds,
        about=precision,
        timed=measured.count,
    )
    console.info(
        f"  model       {recipe.size}: {shape_line(sized_config(recipe.size, vocab_size))}"
    )
    console.info(f"  time here   {time}")
    _advise(facts, seconds, console)
    commands = [shlex.join(["bert-pipeline", name, "--config", str(target)]) for name in SECTIONS]
    heading = (
        *commands,
        f"For {source}, {facts.about}{quantity(facts.words, 'word')}:",
        f"{time}.",
    )
    reasons = {
        name: {key: why for key, why in found.items() if key not in given[name]}
        for name, found in setting_reasons(facts, recipe, settings).items()
    }
    write_text_atomically(target, _config_text(settings, reasons, heading))
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


def _config_text(
    settings: Mapping[str, Mapping[str, Any]],
    reasons: Mapping[str, Mapping[str, str]],
    heading: Sequence[str],
) -> str:
    return "".join(
        commented_yaml(
            name,
            settings[name],
            reasons=reasons[name],
            heading=heading if name == "vocab" else (),
            hints=(f"All keys: bert-pipeline {name} --help-all",),
        )
        for name in SECTIONS
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
    name = name_without_compression(Path(source).name)
    if any(character in name for character in "*?["):
        return Path(source).parent.name or "corpus"
    return name.rpartition(".")[0] or name


def _encoding(path: str) -> str:
    return (file_encoding(path) if Path(path).is_file() else None) or "utf-8"


def _measured(
    train: TrainConfig, preprocess: PreprocessConfig, vocab_size: int, seconds: float
) -> tuple[TriedStep, str]:
    """The whole batch's step, extrapolated from trials of a part, and its precision."""
    # Takes seconds to import, during which there is something to read already.
    from bert_tf.pretraining.step_trial import StepShape, expected_way, try_steps
    from bert_tf.training.arithmetic import BatchRows

    shape = StepShape(
        rows=train.batch_size,
        length=preprocess.max_seq_length,
        predictions=preprocess.max_predictions_per_seq,
    )
    model = train.with_dropout(sized_config(str(train.size), vocab_size))
    part = shape.part(model, _TRIAL_FLOPS)
    rows = BatchRows(batch=part.rows, micro_batches=1, is_filled_up=False)
    way = expected_way(train, rows)
    (tried,) = try_steps([way], model, part, seconds=seconds)
    if tried is None:
        raise RunnerFailed(
            f"{quantity(part.rows, 'row')} do not fit into the memory; set a smaller train.size"
        )
    whole = dataclasses.replace(tried, seconds=tried.seconds * shape.rows / part.rows)
    return whole, way.precision.policy.removeprefix("mixed_")
