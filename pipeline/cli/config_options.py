"""Config sections as the options and arguments of a command, so that flags and YAML never drift.

A key is declared once, as a field of a section with its documentation, bounds and choices. It
becomes a flag, unless it is `advanced`: such keys are only for `--config` and `--set`, and
`--help-all` lists them.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Sequence
from typing import Any

import click

from bert_tf.base.wording import quantity
from bert_tf.config.resolve import Variants
from bert_tf.config.section import Section, argument_text, field_type, flag_text
from bert_tf.config.sections.loop import LoopSection
from bert_tf.config.sections.tables import COLUMN, RunnerConfig
from pipeline.cli.usage import ConfigChoice, PathText, PlainCommand

_SHOWS_ALL = f"{__name__}.shows_all"
_COMMON = "Input, output and model"
_FILES = "Files and columns"
_OPTIONS = "Options"
_GENERAL = "General"
# Headings with their first keys, in the order of the help; other keys are under _OPTIONS.
_HEADINGS = {
    _COMMON: "",
    _FILES: "text_column text_pair_column question_column context_column choices_column "
    "answer_column answer_start_column negative_column tokens_column entities_column "
    "sentence_column label_column tag_column weight_column columns label_names label_separator "
    "label_form tag_names scheme corrections encoding header limit",
    "Training": "steps epochs batch_size learning_rate max_seq_length long_texts window_stride "
    "doc_stride max_query_length max_answer_length warmup_steps warmup_proportion "
    "gradient_accumulation_steps freeze_layers",
    "Evaluation": "folds eval_fraction best_metric early_stop_evals eval_batch_size seeds "
    "grid min_ceiling",
    "Loss and probabilities": "loss class_weights label_smoothing calibration thresholds "
    "target_scaling scale triplet_margin triplet_distance pooling normalize",
    "Distillation": "teacher unlabeled distill_weight distill_temperature",
    _OPTIONS: "format task vocab_size top_k similarity index sentences ratio mmr_lambda tokens "
    "prompt_name max_seq_length lowercase keep_accents masked_lm_prob dupe_factor scores "
    "abstain_below abstain_far extra_columns rename escape_formulas engine",
    "Machine": "strategy tpu_address runner workers dry_run price_per_hour watts report_to seed",
}
_WIDEST_CHOICES = 84  # characters, so that lines of help with a flag have at most 100
_WIDEST_KEY = 96  # characters of a key with its values, indented

AnySection = type[Section] | Variants


class JobCommand(PlainCommand):
    """A command of config sections, whose options are listed in groups.

    Keys without a flag are listed by `--help-all`.

    Attributes:
        groups: parameters by the heading of the help.
        further_keys: spelling and documentation of keys without a flag.
    """

    def __init__(
        self,
        name: str,
        sections: Sequence[AnySection],
        general: Sequence[click.Parameter],
        **options: Any,
    ):
        self.groups: dict[str, list[click.Parameter]] = {title: [] for title in _HEADINGS}
        self.further_keys: list[tuple[str, str]] = []
        for whole in sections:
            several = _several(whole)
            for section, field in section_fields(whole):
                if field.metadata["positional"]:
                    self.groups[_COMMON].append(_argument(field, whole))
                elif field.metadata["advanced"]:
                    self.further_keys.append(_further_key(section, field))
                else:
                    flag = _flag(section, field, many=field.name in several)
                    self.groups[_heading(section, field)].append(flag)
        self.groups[_GENERAL] = [*general, _HELP_ALL]
        super().__init__(name, params=list(itertools.chain(*self.groups.values())), **options)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups, then the keys without a flag, or only their number."""
        help_option = self.get_help_option(ctx)
        for title, group in self.groups.items():
            if title == _GENERAL and help_option is not None:
                group = [*group, help_option]
            records = (parameter.get_help_record(ctx) for parameter in group)
            rows = [record for record in records if record is not None]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
        if self.further_keys and ctx.meta.get(_SHOWS_ALL):
            with formatter.section("More keys, for --config and --set"):
                formatter.write_dl(self.further_keys)
        elif self.further_keys:
            count = quantity(len(self.further_keys), "more key")
            formatter.write_paragraph()
            formatter.write_text(f"Use --help-all to list {count}, for --config and --set.")


class ListedArgument(click.Argument):
    """An argument that the help lists like an option."""

    def __init__(self, declarations: Sequence[str], *, doc: str, **options: Any):
        super().__init__(declarations, **options)
        self.doc = doc

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """Return the placeholder and the documentation."""
        return str(self.metavar), self.doc


def _show_all(ctx: click.Context, parameter: click.Parameter, is_set: bool) -> None:
    if is_set and not ctx.resilient_parsing:
        ctx.meta[_SHOWS_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


_HELP_ALL = click.Option(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_all,
    help="Show this message with all config keys and exit.",
)


def _several(section: AnySection) -> set[str]:
    """Return the fields that hold several values in the section or any variant."""
    names: set[str] = set()
    for variant in _variants(section):
        fields = dataclasses.fields(variant)
        names.update(field.name for field in fields if field_type(variant, field.name).many)
    return names


def _variants(section: AnySection) -> list[type[Section]]:
    if isinstance(section, Variants):
        return [section.common, *section.sections.values()]
    return [section]


def section_fields(section: AnySection) -> list[tuple[type[Section], dataclasses.Field]]:
    """Return each field of a section or of all variants once, with its section.

    They are in the order of the help.
    """
    by_name: dict[str, tuple[type[Section], dataclasses.Field]] = {}
    for variant in _variants(section):
        for field in dataclasses.fields(variant):
            by_name.setdefault(field.name, (variant, field))
    return sorted(by_name.values(), key=_place)


def _heading(section: type[Section], field: dataclasses.Field) -> str:
    """Return the heading of the help that a key is under."""
    if field.metadata["required"] or field.metadata["common"]:
        return _COMMON
    if field.name.endswith(COLUMN) or field.name in _HEADINGS[_FILES].split():
        return _FILES
    if not issubclass(section, LoopSection | RunnerConfig):
        return _OPTIONS
    headings = (title for title, keys in _HEADINGS.items() if field.name in keys.split())
    return next(headings, _OPTIONS)


def _place(listed: tuple[type[Section], dataclasses.Field]) -> tuple[int, int]:
    """Return the place of a field in the help: by heading, then by the keys of the heading.

    Arguments are first, and the output is last of the common keys.
    """
    section, field = listed
    heading = _heading(section, field)
    if heading == _COMMON:
        if field.metadata["positional"]:
            return 0, -1
        return 0, 1 if field.name == "output" else 0
    keys = [*_HEADINGS[heading].split(), field.name]
    return list(_HEADINGS).index(heading), keys.index(field.name)


def _argument(field: dataclasses.Field, section: AnySection) -> click.Argument:
    """Return the argument for a key.

    It is not required for click: a YAML file may have it, and resolving the config reports it if it
    is missing.
    """
    choices = field.metadata["choices"]
    if isinstance(section, Variants) and field.name == section.key:
        choices = section.sections
    return ListedArgument(
        [field.name],
        required=False,
        metavar=argument_text(field),
        type=_value_type(field, choices),
        doc=f"{field.metadata['doc']} [required]",
    )


def _flag(section: type[Section], field: dataclasses.Field, *, many: bool) -> click.Option:
    """Return the option for a key; `many` if any variant of the section has several values."""
    kind = field_type(section, field.name).kind
    metadata = field.metadata
    spelling = flag_text(field)
    doc, depends, default = metadata["doc"].partition(" (default: ")
    default = default.removesuffix(")") if depends else _shown(field.default)
    note = f" [default: {default}]" if default else ""
    if metadata["required"]:
        note = " [required]"
    if kind is bool:
        if "/" not in spelling:
            spelling = f"{spelling}/--no-{spelling.removeprefix('--')}"
        return click.Option([spelling, field.name], default=None, help=doc + note)
    return click.Option(
        [spelling, field.name],
        multiple=many,
        type=_value_type(field, metadata["choices"]),
        metavar=_metavar(field, kind),
        help=doc + _long_choices(field) + note,
    )


def _value_type(field: dataclasses.Field, choices: Collection[str] | None) -> click.ParamType:
    """Return a type that keeps a value as it is, and lets a shell complete it."""
    if choices:
        return ConfigChoice(list(choices))
    is_path = field.metadata["reads"] or field.name == "output"
    return PathText() if is_path else click.STRING


def _metavar(field: dataclasses.Field, kind: type) -> str | None:
    """Return the placeholder in help; None to show the choices."""
    if field.metadata["choices"]:
        return "NAME" if _long_choices(field) else None
    return {int: "N", float: "X"}.get(kind, "TEXT")


def _long_choices(field: dataclasses.Field) -> str:
    """Return the choices for the text of the help if they are too many for the placeholder."""
    choices = field.metadata["choices"] or ()
    return f": {', '.join(choices)}" if len("|".join(choices)) > _WIDEST_CHOICES else ""


def _shown(value: Any) -> str:
    """Return a default in words; "" for none."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return str(value)


def _further_key(section: type[Section], field: dataclasses.Field) -> tuple[str, str]:
    """Return the spelling of a key without a flag, with default and choices, and its meaning."""
    spelling = f"{section.section_name}.{field.name}"
    default = _shown(field.default)
    if default:
        spelling += f"={default}"
    choices = field.metadata["choices"] or ()
    doc = field.metadata["doc"]
    values = f"  {{{'|'.join(choices)}}}" if choices else ""
    if len(spelling + values) > _WIDEST_KEY:
        return spelling, f"{doc}: {', '.join(choices)}"
    return spelling + values, doc
