"""`init` of a task: from a file of labeled rows to a commented config for `finetune`.

Columns are found by their content (`likely_columns` of the task), and lengths by the tokenizer over
all rows. `choose_recipe` of `bert_tf/tasks/running` chooses batch size, learning rate and epochs.
The time is measured by training steps on the rows, whose weights are thrown away.
"""

from __future__ import annotations

import dataclasses
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
from bert_tf.config.resolve import resolve
from bert_tf.config.section import build_section, former_defaults
from bert_tf.config.sections import FinetuneConfig
from bert_tf.config.sections.tables import ID_COLUMN
from bert_tf.data.tables.dialect import TableDialect, name_without_compression, table_format_by_name
from bert_tf.data.tables.places import likely_id_column
from bert_tf.data.tables.rejects import describe_rejects
from bert_tf.data.tables.sketches import TableSketch, check_first_line, sketch_columns
from bert_tf.data.tables.tables import fixed_columns, read_table_blocks
from bert_tf.data.tables.text_files import file_encoding
from bert_tf.tasks.registry import TASKS, likely_columns
from bert_tf.tasks.running.recipe import ChosenRecipe, choose_recipe
from pipeline.proposal.config_text import commented_yaml, config_file, time_line

if TYPE_CHECKING:
    from bert_tf.tasks.running.survey import MeasuredSteps, RowSurvey


_ROWS = 4096  # by which the columns are found
_WIDEST_EXAMPLE = 50  # characters
_COVERED = 0.99  # of the rows, at least, are read to their end
_LEAST_LENGTH = 32  # tokens
_LENGTH_MULTIPLE = 16  # tokens
_MEASURED_SECONDS = 2.0  # of training steps
_QUANTILES = {"median": 0.5, "90%": 0.9, "99%": 0.99, "longest": 1.0}
_EVALUATION_WORK = 1 / 3  # of a training step's: only the forward pass
_HINTS = (
    "eval: dev.csv         rows to evaluate on, instead of a tenth of these",
    "grid: learning_rate=… runs with several values, seeds: 3 with several seeds",
    "All keys: bert-pipeline finetune --help-all",
)


def column_lines(table: TableSketch) -> Iterator[str]:
    """Yield a table of the columns: kind, cells that are filled, different values, an example."""
    width = max(len("column"), *(len(column.name) for column in table.columns))
    yield f"  {'column':{width}}  {'kind':6}  {'filled':>6}  {'different':>9}  example"
    for column in table.columns:
        example = column.example
        if len(example) > _WIDEST_EXAMPLE:
            example = example[: _WIDEST_EXAMPLE - 1] + "…"
        filled = column.filled / max(column.rows, 1)
        yield (
            f"  {column.name:{width}}  {column.kind:6}  {filled:>6.0%}  {column.distinct:>9,}  "
            f"{example}"
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Draft:
    """A config in the making.

    Attributes:
        options: the section of the task.
        values: by key, in the order of writing.
        user_keys: keys that the user has set, which are kept.
        reasons: comments by key.
    """

    options: type[FinetuneConfig]
    values: dict[str, Any]
    user_keys: frozenset[str]
    reasons: dict[str, str]

    def config(self, **changes: Any) -> FinetuneConfig:
        """Return the section, with changes to keys that the user has not set."""
        allowed = {key: value for key, value in changes.items() if key not in self.user_keys}
        return build_section(self.options, {**self.values, **allowed})


def draft_config(
    task: str, source: str, *, init: str, run: str, assignments: tuple[str, ...], console: Console
) -> Draft:
    """Find encoding and columns of a file of labeled rows, and show them on the console.

    Args:
        task: its name.
        source: the file.
        init: the model to start from.
        run: output of the run that is proposed.
        assignments: `finetune.key=value` texts of the user.
        console: for the columns, and for columns that might be meant instead.

    Returns:
        The config so far.

    Raises:
        InputError: the file cannot be read.
        UsageError: it has no column that fits, or an assignment is wrong.
    """
    options = TASKS[task].options
    required = {"task": task, "train": source, "init": init, "output": run}
    base = resolve(options, assignments=assignments, flags=required)
    keys = [text.partition("=")[0].partition(".")[2] for text in assignments]
    values = {key: value for key, value in base.as_dict().items() if key in keys}
    draft = Draft(
        options=options, values={**required, **values}, user_keys=frozenset(values), reasons={}
    )
    encoding = str(values.get("encoding") or file_encoding(source) or "utf-8")
    if encoding not in ("utf-8", values.get("encoding")):
        console.info(
            f"  encoding: not UTF-8, read as {encoding}; check that the examples are right"
        )
        draft.values["encoding"] = encoding
        draft.reasons["encoding"] = "a guess: the file is not UTF-8"
    if table_format_by_name(source) is not None and not fixed_columns(source):
        dialect = TableDialect.of(draft.config())
        blocks = read_table_blocks(source, dialect=dialect, block_rows=_ROWS, max_rows=_ROWS)
        block = next(block for block in blocks if block.rows)
        if block.header is not None and "header" not in values:
            check_first_line(source, block.columns, block.rows)
        columns = sketch_columns(block.columns, block.rows)
        table = TableSketch(path=source, columns=columns, chosen=values)
        console.info(*column_lines(table))
        guessed = likely_columns(task, table)
        for key, names in table.rivals.items():
            listed = ", ".join(map(repr, names))
            console.info(f"  {key} {guessed[key]!r} is a guess; also possible: {listed}")
        id_column = likely_id_column(block.columns, block.rows, _names_in({**guessed, **values}))
        if id_column is not None:
            guessed = {**guessed, ID_COLUMN: id_column}
        draft.values.update({key: guessed[key] for key in guessed if key not in values})
        draft.reasons.update(_column_reasons(guessed, table))
    return draft


def _names_in(columns: Mapping[str, Any]) -> set[str]:
    """Return the columns that settings name, one or several each."""
    names: set[str] = set()
    for value in columns.values():
        if isinstance(value, str):
            names.add(value)
        elif isinstance(value, list | tuple):
            names.update(value)
    return names


def _column_reasons(columns: Mapping[str, Any], table: TableSketch) -> dict[str, str]:
    """Return a comment on each key that names a column: the values of the column."""
    reasons = {}
    for column in table.columns:
        reasons[column.name] = f"{column.distinct:,} different values"
        if column.words >= 2:
            reasons[column.name] = f"{column.words:.0f} words on average"
    names = {key: name for key, name in columns.items() if isinstance(name, str)}
    return {key: reasons[name] for key, name in names.items() if name in reasons}


def choose_length(
    lengths: np.ndarray, *, in_windows: bool, default: int, longest_of_model: int
) -> int:
    """Choose the tokens of a sequence, so that 99% of the rows fit.

    Args:
        lengths: int [rows], of the whole sequences with [CLS] and [SEP].
        in_windows: whether long texts are split into windows, which takes the task's length.
        default: the task's length.
        longest_of_model: its position embeddings.

    Returns:
        A multiple of 16, at least 32, unless the model reads fewer.
    """
    if in_windows:
        return min(default, longest_of_model)
    needed = int(np.quantile(lengths, _COVERED, method="higher"))
    rounded = -(-needed // _LENGTH_MULTIPLE) * _LENGTH_MULTIPLE
    return min(max(_LEAST_LENGTH, rounded), longest_of_model)


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
    """Inspect labeled rows and write a config to fine-tune on them.

    Args:
        task: its name.
        source: the file of rows.
        init: the model to start from.
        output: the config to write; named after source and task by default.
        assignments: `finetune.key=value` texts, which are kept.
        overwrite: whether to replace the config.
        console: for the findings.

    Returns:
        Path and settings of the config, and the facts behind them: `duplicates` are rows with the
            texts of an earlier row, `tokens` quantiles of the lengths of sequences, `seconds`
            estimated for the start, all steps and evaluations; `next` is the command line to run.

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
    # Imported after the first findings are shown, since it takes seconds.
    from bert_tf.tasks.running.survey import Surveyor
    from bert_tf.weights.model_directory import read_model_directory

    model = read_model_directory(init)
    widest = draft.config(max_seq_length=model.config.max_position_embeddings)
    surveyor = Surveyor(widest, model, Console(io.StringIO()))
    survey = surveyor.look(widest, console)
    console.info(*_seen(source, survey))
    held_out = 0.0 if widest.eval is not None else widest.eval_fraction
    settings, recipe = _settings(model.config, survey, widest, held_out)
    config = draft.config(**settings)
    chosen = {key: value for key, value in settings.items() if key not in draft.user_keys}
    measured = surveyor.measure(config, _MEASURED_SECONDS, console)
    facts: dict[str, Any] = {
        "config": str(target),
        "settings": {**draft.values, **chosen},
        "rows": survey.rows,
        "rejected": len(survey.rejects),
        "duplicates": survey.duplicates,
        "tokens": _quantiles(survey.lengths),
        "steps": recipe.steps,
        "seconds_per_step": measured.seconds,
        "seconds": _seconds(recipe, measured, held_out),
    }
    reasons = {
        **draft.reasons,
        **_reasons(recipe, survey, model.config, config.sequence_length),
    }
    reasons = {key: reason for key, reason in reasons.items() if key not in draft.user_keys}
    return _write(source, facts, measured, reasons, _shape(model.config), console)


def preview_finetuning(config: FinetuneConfig, console: Console) -> dict[str, Any]:
    """Report rows, steps, time and costs of a config without training; write nothing.

    Returns:
        `rows`, `steps` of a run, number of `runs`, `seconds_per_step`, and the estimated `seconds`
        of all runs with their evaluations; with rates of the machine their `cost` and `kwh`.

    Raises:
        UsageError, InputError: the rows or the model cannot be used.
    """
    # Takes seconds to import.
    from bert_tf.tasks.running.survey import Surveyor
    from bert_tf.weights.model_directory import read_model_directory

    model = read_model_directory(config.init)
    surveyor = Surveyor(config, model, Console(io.StringIO()))
    survey = surveyor.look(config, console)
    console.info(*_seen(config.train, survey))
    held_out = 0.0 if config.eval is not None else config.eval_fraction
    recipe = _recipe(model.config, survey, config, held_out, config.sequence_length)
    complete = dataclasses.replace(config, **recipe.settings)
    measured = surveyor.measure(complete, _MEASURED_SECONDS, console)
    runs = len(config.runs()) if config.is_series else 1
    seconds = runs * _seconds(recipe, measured, held_out)
    time = time_line(seconds, runs * recipe.steps, measured, measured.precision)
    costs = config.rates.shown(seconds)
    if costs:
        time = f"{time}; {costs}"
    console.info(f"  time here   {time}", "dry run: nothing was written")
    return {
        "dry_run": True,
        "rows": survey.rows,
        "rejected": len(survey.rejects),
        "steps": recipe.steps,
        "runs": runs,
        "seconds_per_step": measured.seconds,
        "seconds": seconds,
        **config.rates.figures(seconds),
    }


def _seconds(recipe: ChosenRecipe, measured: MeasuredSteps, held_out: float) -> float:
    """Estimate the time of a run: its start, all steps, and evaluations of held-out rows."""
    work = recipe.steps * (1 + held_out / (1 - held_out) * _EVALUATION_WORK)
    return measured.start_seconds + work * measured.seconds


def _write(
    source: str,
    facts: dict[str, Any],
    measured: MeasuredSteps,
    reasons: Mapping[str, str],
    shape: str,
    console: Console,
) -> dict[str, Any]:
    """Write the config, and add `next` to the facts."""
    seconds = facts["seconds"]
    steps = facts["steps"]
    arithmetic = measured.precision
    time = time_line(seconds, steps, measured, f"{arithmetic}, {shape}")
    console.info(f"  time here   {time}")
    command = shlex.join(["bert-pipeline", "finetune", "--config", facts["config"]])
    rows = quantity(facts["rows"], "row")
    time = time_line(seconds, steps, measured, arithmetic)
    heading = (command, f"For {rows} of {source}: {time}.")
    text = commented_yaml(
        "finetune", facts["settings"], reasons=reasons, heading=heading, hints=_HINTS
    )
    write_text_atomically(facts["config"], text)
    console.info(f"wrote {facts['config']}; next: {command}")
    return {**facts, "next": command}


def _settings(
    model: BertConfig, survey: RowSurvey, config: FinetuneConfig, held_out: float
) -> tuple[dict[str, Any], ChosenRecipe]:
    """Return the values of the config that follow from the rows, by key, and the recipe in them.

    Args:
        model: to start from.
        survey: of all rows.
        config: with the values of the user; those of the recipe are kept.
        held_out: fraction of the rows that is not trained on.
    """
    length = choose_length(
        survey.lengths,
        in_windows=survey.in_windows,
        default=config.default_sequence_length,
        longest_of_model=model.max_position_embeddings,
    )
    recipe = _recipe(model, survey, config, held_out, length)
    settings = {"max_seq_length": length, **recipe.settings}
    if not config.evaluates or not recipe.early_stop_loss:
        del settings["early_stop_loss"]
    return settings, recipe


def _recipe(
    model: BertConfig, survey: RowSurvey, config: FinetuneConfig, held_out: float, length: int
) -> ChosenRecipe:
    """Choose the recipe for the rows; values of the user are kept. See `_settings`."""
    values = {key: getattr(config, key) for key in former_defaults(config)}
    return choose_recipe(
        model,
        max_seq_length=length,
        rows=survey.rows * (1 - held_out),
        sequences_per_row=survey.sequences_per_row,
        chosen_by_user={key: value for key, value in values.items() if value is not None},
        least_batch_size=config.gradient_accumulation_steps,
        stops_by_metric=config.early_stop_evals > 0,
    )


def _seen(source: str, survey: RowSurvey) -> Iterator[str]:
    """Yield lines on rows for the user: their number, rejects, duplicates and lengths."""
    yield f"  rows        {survey.rows:,} usable, {len(survey.rejects):,} rejected"
    yield from describe_rejects(survey.rejects, survey.rows + len(survey.rejects), source)
    if survey.duplicates:
        several = quantity(survey.conflicting, "text")
        conflicts = f"; {several} with several labels" if survey.conflicting else ""
        repeated = quantity(survey.duplicates, "row")
        yield f"  duplicates  {repeated} with the texts of an earlier row{conflicts}"
    lengths = _quantiles(survey.lengths)
    quantiles = ", ".join(f"{name} {length:,}" for name, length in lengths.items())
    unit = " (of windows)" if survey.in_windows else ""
    cut = f"; {survey.cut}" if survey.cut else ""
    yield f"  tokens      {quantiles}{unit}{cut}"
    yield from survey.details


def _quantiles(lengths: np.ndarray) -> dict[str, int]:
    return {name: int(np.ceil(np.quantile(lengths, share))) for name, share in _QUANTILES.items()}


def _shape(model: BertConfig) -> str:
    return f"{quantity(model.num_hidden_layers, 'layer')}, {model.hidden_size} wide"


def _reasons(
    recipe: ChosenRecipe, survey: RowSurvey, model: BertConfig, max_seq_length: int
) -> dict[str, str]:
    """Return a comment on each value that follows from the rows."""
    fitting = float((survey.lengths <= max_seq_length).mean())
    fit = "all" if fitting == 1.0 else f"{fitting:.1%} of the"
    return {
        "init": _shape(model),
        "max_seq_length": f"{fit} sequences fit whole",
        "batch_size": "32 for many short rows, else 16",
        "learning_rate": f"for models {model.hidden_size} wide",
        "epochs": f"{quantity(recipe.steps, 'step')}",
        "early_stop_loss": "stops when the loss on held-out rows has doubled",
    }
