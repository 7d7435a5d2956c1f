"""The help of a command that is made out of config sections: what most people need comes first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from bert_tf.base.wording import quantity
from pipeline.cli.usage import PlainCommand

_SHOWS_ALL = f"{__name__}.shows_all"
_GENERAL = "General"
_Rows = list[tuple[str, str]]


class JobCommand(PlainCommand):
    """A command whose options are listed in groups, and keys without a flag by `--help-all`.

    Args:
        common: parameters of input, output and model.
        rest: other parameters of the command's sections.
        general: parameters that every such command has.
        further_keys: spelling with default and help of each key that has no flag.
        options: as of `click.Command`.
    """

    def __init__(
        self,
        name: str,
        *,
        common: Sequence[click.Parameter],
        rest: Sequence[click.Parameter],
        general: Sequence[click.Parameter],
        further_keys: _Rows,
        **options: Any,
    ):
        general = [*general, _help_all()]
        super().__init__(name, params=[*common, *rest, *general], **options)
        self.groups = {"Input, output and model": common, "Options": rest, _GENERAL: general}
        self.further_keys = further_keys

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the groups; after them the keys without a flag, or how many there are."""
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
    """An argument that is listed among the options.

    Args:
        declarations: as of `click.Argument`.
        doc: one line of help.
        options: as of `click.Argument`.
    """

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
