"""Config sections as the options and arguments of a command, so that flags and YAML never drift."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import click

from bert_tf.base.wording import quantity
from bert_tf.config.section import Section, argument_text, field_type, flag_text
from bert_tf.config.variants import Variants
from pipeline.cli.usage import ConfigChoice, PathText, PlainCommand

_SHOWS_ALL = f"{__name__}.shows_all"
_GENERAL = "General"
_WIDEST_CHOICES = 84  # characters, so that lines of help with a flag have at most 100
_WIDEST_KEY = 96  # characters of a key with its values, indented

AnySection = type[Section] | Variants


class JobCommand(PlainCommand):
    """Lists its options in groups, and keys without a flag by `--help-all`."""

    def __init__(
        self,
        name: str,
        sections: Sequence[AnySection],
        general: Sequence[click.Parameter],
        **options: Any,
    ):
        common: list[click.Parameter] = []
        rest: list[click.Parameter] = []
        self.further_keys: list[tuple[str, str]] = []
        for each in sections:
            several = _several(each)
            for section, field in section_fields(each):
                if field.metadata["positional"]:
                    common.append(_argument(field, each))
                elif field.metadata["advanced"]:
                    self.further_keys.append(_further_key(section, field))
                else:
                    group = common if _is_common(field) else rest
                    group.append(_flag(section, field, many=field.name in several))
        general = [*general, _help_all()]
        super().__init__(name, params=[*common, *rest, *general], **options)
        self.groups = {"Input, output and model": common, "Options": rest, _GENERAL: general}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the groups, then the keys without a flag or how many there are."""
        help_option = self.get_help_option(ctx)
        for title, group in self.groups.items():
            if title == _GENERAL and help_option is not None:
                group = [*group, help_option]
            rows = [row for parameter in group if (row := _row(parameter, ctx)) is not None]
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
    def __init__(self, declarations: Sequence[str], *, doc: str, **options: Any):
        super().__init__(declarations, **options)
        self.doc = doc


def _row(parameter: click.Parameter, ctx: click.Context) -> tuple[str, str] | None:
    if isinstance(parameter, ListedArgument):
        return str(parameter.metavar), parameter.doc
    return parameter.get_help_record(ctx)


def _help_all() -> click.Option:
    return click.Option(
        ["--help-all"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_show_all,
        help="Show this message with all config keys and exit.",
    )


def _show_all(ctx: click.Context, parameter: click.Parameter, is_given: bool) -> None:
    if is_given and not ctx.resilient_parsing:
        ctx.meta[_SHOWS_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


def _several(section: AnySection) -> set[str]:
    """The fields that hold several values in the section or any variant."""
    return {
        field.name
        for variant in _variants(section)
        for field in dataclasses.fields(variant)
        if field_type(variant, field.name)[1]
    }


def _variants(section: AnySection) -> list[type[Section]]:
    if isinstance(section, Variants):
        return [section.common, *section.sections.values()]
    return [section]


def section_fields(section: AnySection) -> Iterator[tuple[type[Section], dataclasses.Field]]:
    """Each field of a section or of all variants once, with the section it is from."""
    seen = set()
    for variant in _variants(section):
        for field in _in_help_order(variant):
            if field.name not in seen:
                seen.add(field.name)
                yield variant, field


def _in_help_order(section: type[Section]) -> list[dataclasses.Field]:
    """Input, output and model first; then a section's own fields before inherited ones."""

    def place(field: dataclasses.Field) -> tuple[int, int]:
        if _is_common(field):
            return 0, -1 if field.metadata["positional"] else int(field.name == "output")
        classes = enumerate(section.__mro__)
        return 1, next(depth for depth, each in classes if field.name in each.__annotations__)

    return sorted(dataclasses.fields(section), key=place)


def _is_common(field: dataclasses.Field) -> bool:
    return field.metadata["required"] or field.metadata["common"]


def _argument(field: dataclasses.Field, section: AnySection) -> click.Argument:
    # Not required here: a YAML file may have it, and resolving says in which words it is missing.
    return ListedArgument(
        [field.name],
        required=False,
        metavar=argument_text(field),
        type=_value_type(field, _choices(field, section)),
        doc=f"{field.metadata['doc']} [required]",
    )


def _flag(section: type[Section], field: dataclasses.Field, *, many: bool) -> click.Option:
    kind, _, _ = field_type(section, field.name)
    metadata = field.metadata
    spelling = flag_text(field)
    if metadata["required"]:
        note = " [required]"
    else:
        default = _shown(field.default)
        note = f" [default: {default}]" if default else ""
    if kind is bool:
        if "/" not in spelling:
            spelling = f"{spelling}/--no-{spelling.removeprefix('--')}"
        return click.Option([spelling, field.name], default=None, help=metadata["doc"] + note)
    return click.Option(
        [spelling, field.name],
        multiple=many,
        type=_value_type(field, metadata["choices"]),
        metavar=_metavar(field, kind),
        help=metadata["doc"] + _long_choices(field) + note,
    )


def _choices(field: dataclasses.Field, section: AnySection) -> Collection[str] | None:
    if isinstance(section, Variants) and field.name == section.key:
        return section.sections
    choices: Collection[str] | None = field.metadata["choices"]
    return choices


def _value_type(field: dataclasses.Field, choices: Collection[str] | None) -> click.ParamType:
    """Reads a value as it is, and tells a shell how to complete it."""
    if choices:
        return ConfigChoice(list(choices))
    is_path = field.metadata["reads"] or field.name == "output"
    return PathText() if is_path else click.STRING


def _metavar(field: dataclasses.Field, kind: type) -> str | None:
    """The placeholder in help; None to show the choices."""
    if field.metadata["choices"]:
        return "NAME" if _long_choices(field) else None
    return {int: "N", float: "X"}.get(kind, "TEXT")


def _long_choices(field: dataclasses.Field) -> str:
    choices = field.metadata["choices"] or ()
    return f": {', '.join(choices)}" if len("|".join(choices)) > _WIDEST_CHOICES else ""


def _shown(value: Any) -> str:
    """A default as the command line takes it; empty for none."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _default(field: dataclasses.Field) -> str:
    shown = _shown(field.default)
    return f"={shown}" if shown else ""


def _further_key(section: type[Section], field: dataclasses.Field) -> tuple[str, str]:
    spelling = f"{section.section_name}.{field.name}{_default(field)}"
    choices, doc = field.metadata["choices"] or (), field.metadata["doc"]
    values = f"  {{{'|'.join(choices)}}}" if choices else ""
    if len(spelling + values) > _WIDEST_KEY:
        return spelling, f"{doc}: {', '.join(choices)}"
    return spelling + values, doc
