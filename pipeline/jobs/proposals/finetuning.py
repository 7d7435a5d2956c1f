"""`init` of a task: from a file of labeled rows to a commented config for `finetune`."""

from __future__ import annotations

import io
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.base.console import Console
from bert_tf.base.files import write_text_atomically
from bert_tf.base.wording import quantity
from bert_tf.config.bert import BertConfig
from bert_tf.data.tables.dialect import name_without_compression
from bert_tf.data.tables.rejects import describe_rejects
from pipeline.proposal.config_text import commented_yaml, config_file, time_line
from pipeline.proposal.recipe import Recipe, choose_length, choose_recipe, draft_config

if TYPE_CHECKING:
    from bert_tf.tasks.running.survey import MeasuredSteps, RowSurvey

_MEASURED_SECONDS = 2.0
_QUANTILES = {"median": 0.5, "90%": 0.9, "99%": 0.99, "longest": 1.0}
_EVALUATION_WORK = 1 / 3  # of a training step's: only the forward pass
_HINTS = (
    "eval: dev.csv         rows to evaluate on, instead of a tenth of these",
    "grid: learning_rate=… runs with several values, seeds: 3 with several seeds",
    "All keys: bert-pipeline finetune --help-all",
)


def propose(
    task: str,
    source: str,
    *,
    init: str,
    output: str | None = None,
    assignments: tuple[str, ...] = (),
    overwrite: bool = False,
    console: Console,
) -> dict[str, Any]:
    """Inspects labeled rows and writes a config to fine-tune on them.

    Names the file after source and task by default; keeps the `finetune.key=value` assignments.

    Returns:
        Path and settings of the config, and what they follow from: `duplicates` are rows with the
        texts of an earlier row, `tokens` quantiles of the lengths of sequences, `seconds` estimated
        for the start, all steps and evaluations; `next` is the command line to run.

    Raises:
        UsageError: no such file or model; no fitting column; the file to write exists.
        InputError: the rows cannot be used.
    """
    stem = name_without_compression(Path(source).name).rpartition(".")[0] or Path(source).name
    target = config_file(output or f"{stem}-{task}.yaml", overwrite=overwrite)
    console.info(f"{source}: looking at the first rows")
    run = str(target.with_suffix(""))
    draft = draft_config(task, source, init=init, run=run, assignments=assignments, console=console)
    console.info(f"  reading all rows, with the tokenizer of {init}")
    # Takes seconds to import, during which there is something to read already.
    from bert_tf.tasks.running.survey import Surveyor
    from bert_tf.weights.model_directory import read_model_directory

    model = read_model_directory(init)
    widest = draft.config(max_seq_length=model.config.max_position_embeddings)
    surveyor = Surveyor(widest, model, Console(io.StringIO()))
    survey = surveyor.look(widest, console)
    console.info(*_seen(source, survey))
    held_out = 0.0 if widest.eval is not None else widest.eval_fraction
    recipe = _recipe(model.config, survey, draft.options.default_sequence_length, held_out)
    config = draft.config(**recipe.settings)
    chosen = {key: value for key, value in recipe.settings.items() if key not in draft.given}
    measured = surveyor.measure(config, _MEASURED_SECONDS)
    steps = recipe.steps_of(batch_size=config.batch_size, epochs=config.epochs)
    work = steps * (1 + held_out / (1 - held_out) * _EVALUATION_WORK)
    facts: dict[str, Any] = {
        "config": str(target),
        "settings": {**draft.values, **chosen},
        "rows": survey.rows,
        "rejected": len(survey.rejects),
        "duplicates": survey.duplicates,
        "tokens": _quantiles(survey.lengths),
        "steps": steps,
        "seconds_per_step": measured.seconds,
        "seconds": measured.start_seconds + work * measured.seconds,
    }
    reasons = {**draft.reasons, **_reasons(recipe, survey, model.config)}
    reasons = {key: reason for key, reason in reasons.items() if key not in draft.given}
    return _write(source, facts, measured, reasons, _shape(model.config), console)


def _write(
    source: str,
    facts: dict[str, Any],
    measured: MeasuredSteps,
    reasons: Mapping[str, str],
    shape: str,
    console: Console,
) -> dict[str, Any]:
    """Writes the config and adds `next` to the facts."""

    def time(about: str) -> str:
        return time_line(
            facts["seconds"],
            facts["steps"],
            step_seconds=measured.seconds,
            about=about,
            timed=measured.count,
        )

    console.info(f"  time here   {time(f'{measured.precision}, {shape}')}")
    command = shlex.join(["bert-pipeline", "finetune", "--config", facts["config"]])
    rows = quantity(facts["rows"], "row")
    heading = (command, f"For {rows} of {source}: {time(measured.precision)}.")
    text = commented_yaml(
        "finetune", facts["settings"], reasons=reasons, heading=heading, hints=_HINTS
    )
    write_text_atomically(facts["config"], text)
    console.info(f"wrote {facts['config']}; next: {command}")
    return {**facts, "next": command}


def _recipe(model: BertConfig, survey: RowSurvey, default_length: int, held_out: float) -> Recipe:
    length = choose_length(
        survey.lengths,
        in_windows=survey.in_windows,
        default=default_length,
        longest_of_model=model.max_position_embeddings,
    )
    return choose_recipe(
        model,
        max_seq_length=length,
        rows=survey.rows * (1 - held_out),
        sequences_per_row=survey.sequences_per_row,
    )


def _seen(source: str, survey: RowSurvey) -> Iterator[str]:
    yield f"  rows        {survey.rows:,} usable, {len(survey.rejects):,} rejected"
    yield from describe_rejects(survey.rejects, survey.rows + len(survey.rejects), source)
    if survey.duplicates:
        conflicts = (
            f"; {quantity(survey.conflicting, 'text')} with several labels"
            if survey.conflicting
            else ""
        )
        repeated = quantity(survey.duplicates, "row")
        yield f"  duplicates  {repeated} with the texts of an earlier row{conflicts}"
    quantiles = ", ".join(f"{name} {n:,}" for name, n in _quantiles(survey.lengths).items())
    cut = f"; {survey.cut}" if survey.cut else ""
    yield f"  tokens      {quantiles}{' (of windows)' if survey.in_windows else ''}{cut}"
    yield from survey.details


def _quantiles(lengths: np.ndarray) -> dict[str, int]:
    return {name: int(np.ceil(np.quantile(lengths, q))) for name, q in _QUANTILES.items()}


def _shape(model: BertConfig) -> str:
    return f"{quantity(model.num_hidden_layers, 'layer')}, {model.hidden_size} wide"


def _reasons(recipe: Recipe, survey: RowSurvey, model: BertConfig) -> dict[str, str]:
    fitting = float((survey.lengths <= recipe.max_seq_length).mean())
    fit = "all" if fitting == 1.0 else f"{fitting:.1%} of the"
    return {
        "init": _shape(model),
        "max_seq_length": f"{fit} sequences fit whole",
        "batch_size": "32 for many short rows, else 16",
        "learning_rate": f"for models {model.hidden_size} wide",
        "epochs": f"{quantity(recipe.steps, 'step')}",
    }
