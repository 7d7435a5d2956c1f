"""The options that are about running a job, not about what it makes."""

from __future__ import annotations

from typing import Any

import click

from pipeline.cli.startup.third_party_output import QUIET_HELP, VERBOSE_HELP
from pipeline.cli.usage import PathText
from pipeline.outputs.rejects import RejectLimit

_COMMON = (
    click.Option(
        ["--config"],
        metavar="FILE.yaml",
        type=PathText(),
        help="YAML file with one section per command",
    ),
    click.Option(
        ["--set", "assignments"],
        multiple=True,
        metavar="section.key=value",
        help="set a key of the command's config; repeatable",
    ),
    click.Option(["--overwrite"], is_flag=True, help="replace an output made with another config"),
    click.Option(["--json", "as_json"], is_flag=True, help="print the manifest as JSON"),
    click.Option(["--quiet"], is_flag=True, help=QUIET_HELP),
    click.Option(["--verbose"], is_flag=True, help=VERBOSE_HELP),
)

_RESUME = click.Option(
    ["--resume"],
    is_flag=True,
    help="resume from the latest checkpoint (the default; logs a line if there is none)",
)
_STRICT = click.Option(
    ["--strict"],
    is_flag=True,
    help="exit with code 1 if the health check of the result warns; the output stays",
)


def general_options(
    *, resumes: bool, has_rows: bool, max_rejects: str | None, has_health: bool
) -> list[click.Parameter]:
    """The general options of a command.

    Args:
        resumes: whether it has `--resume`.
        has_rows: whether it has `--max-rejects`.
        max_rejects: its default; None allows any number.
        has_health: whether it has `--strict`.
    """
    options: list[click.Parameter] = [*_COMMON]
    if has_rows:
        options.append(_max_rejects(max_rejects))
    if has_health:
        options.append(_STRICT)
    if resumes:
        options.append(_RESUME)
    return options


class _LimitType(click.ParamType):
    """The value of `--max-rejects`."""

    name = "limit"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> RejectLimit:
        try:
            return value if isinstance(value, RejectLimit) else RejectLimit.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _max_rejects(default: str | None) -> click.Option:
    return click.Option(
        ["--max-rejects"],
        type=_LimitType(),
        default=default,
        metavar="N|FRACTION",
        help=(
            "exit with code 3 if more rows are rejected than this number (10) or fraction (0.1 "
            f"or 10%) (default: {default or 'any number'})"
        ),
    )
