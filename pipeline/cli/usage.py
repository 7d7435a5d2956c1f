"""Faults of a command line, in one line each.

Commands, types and messages for click, whose errors are replaced by messages of this tool.
"""

from __future__ import annotations

import collections
import functools
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from bert_tf.base.errors import ConfigError
from bert_tf.base.wording import did_you_mean, quantity
from bert_tf.config.section import Reads, field_given_again

QUIET_HELP = "only show warnings and errors"
VERBOSE_HELP = "also show all output of TensorFlow, Beam and other libraries"
_SHOWN = 3  # left-over arguments in a message
_HELP_OF = f"{__name__}.help_of"  # the name in `helps` that an argument has
HELP_FLAGS: dict[str, Any] = {"help_option_names": ["-h", "--help"]}


class PlainCommand(click.Command):
    """A command that rejects repeated single-value options, and explains leftover arguments.

    Attributes:
        helps: commands whose help replaces the command's own where an argument names them.
    """

    helps: Mapping[str, click.Command] = {}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse arguments; refuse options given twice, and arguments that have no place."""
        # Click's parser changes the list.
        words = list(args)
        ctx.meta[_HELP_OF] = next((arg for arg in args if arg in self.helps), None)
        ctx.allow_extra_args = True
        if not ctx.resilient_parsing:
            self._refuse_repeated(ctx, words)
        left_over = super().parse_args(ctx, args)
        if left_over and not ctx.resilient_parsing:
            repeatable: set[str] = set()
            for parameter in self.params:
                if isinstance(parameter, click.Option) and parameter.multiple:
                    repeatable.update(parameter.opts)
            raise click.UsageError(_about_left_over(left_over, words, repeatable), ctx)
        return left_over

    def _refuse_repeated(self, ctx: click.Context, args: list[str]) -> None:
        """Refuse a single-value option that is given twice: click would keep the last one."""
        _, _, order = self.make_parser(ctx).parse_args(list(args))
        for parameter, times in collections.Counter(order).items():
            if times == 1 or not isinstance(parameter, click.Option) or parameter.multiple:
                continue
            # Repeating a switch without an opposite changes nothing.
            if not parameter.is_flag or parameter.secondary_opts:
                raise click.UsageError(field_given_again(parameter.opts[0], times), ctx)

    def invoke(self, ctx: click.Context) -> Any:
        """Check the paths of all inputs, then run the command."""
        from pipeline.cli.preflight import path_fault  # `--help` need not load it

        faults = []
        for parameter in self.params:
            kind = parameter.type
            if isinstance(kind, InputPath):
                values = ctx.params.get(str(parameter.name)) or ()
                paths = (values,) if isinstance(values, str) else values
                faults += [path_fault(kind.reads, _spelling(parameter), path) for path in paths]
        if any(faults):
            raise ConfigError(list(filter(None, faults)))
        return super().invoke(ctx)

    def get_help(self, ctx: click.Context) -> str:
        """Return the help, of a task if an argument names one."""
        of_task = self.helps.get(ctx.meta.get(_HELP_OF) or "")
        return super().get_help(ctx) if of_task is None else of_task.get_help(ctx)


plain_command = functools.partial(click.command, cls=PlainCommand, context_settings=HELP_FLAGS)
quiet_option = click.option("--quiet", is_flag=True, help=QUIET_HELP)
verbose_option = click.option("--verbose", is_flag=True, help=VERBOSE_HELP)


class ConfigChoice(click.Choice):
    """Choices for help and completion; resolving the config rejects others with a hint."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value as it is."""
        return value


class PathText(click.ParamType):
    """A path, which a shell completes."""

    name = "path"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Let the shell complete the names of files."""
        return [CompletionItem(incomplete, type="file")]


class InputPath(PathText):
    """A path that has to exist; checked before anything is loaded.

    Attributes:
        reads: the kind of path that is needed.
    """

    def __init__(self, reads: Reads):
        self.reads = reads


def explain_usage(error: click.ClickException) -> str:
    """Reword an error of click as a line in this tool's tone."""
    message = error.format_message().rstrip(".")
    if isinstance(error, click.exceptions.BadParameter) and error.param is not None:
        message = f"{_spelling(error.param)}: {error.message.rstrip('.')}"
        message = message.replace("valid integer range", "valid integer")
    if isinstance(error, click.MissingParameter) and error.param is not None:
        message = f"{_spelling(error.param)} is missing"
    if isinstance(error, click.NoSuchOption):
        message = f"no option {error.option_name}"
        known = error.possibilities or []
        message += did_you_mean(error.option_name, known, "; did you mean {}?", cutoff=0.7)
    if message[1:2].islower():
        message = message[0].lower() + message[1:]
    context = getattr(error, "ctx", None)
    return f"{message} (see {context.command_path} --help)" if context else message


def _spelling(parameter: click.Parameter) -> str:
    """Return the name of a parameter on the command line."""
    if isinstance(parameter, click.Argument):
        return parameter.metavar or str(parameter.name).upper()
    return parameter.opts[0]


def _about_left_over(left_over: list[str], words: list[str], repeatable: set[str]) -> str:
    """Explain arguments without a place.

    Args:
        left_over: these arguments.
        words: all arguments.
        repeatable: flags that take one value each, after which a shell may have expanded a glob.
    """
    named = ", ".join(left_over[:_SHOWN])
    if len(left_over) > _SHOWN:
        named += ", …"
    first = words.index(left_over[0])
    flag = words[first - 2] if first >= 2 else ""
    if flag not in repeatable or not all(Path(path).exists() for path in left_over):
        return f"{quantity(len(left_over), 'argument')} too many: {named}"
    paths = [Path(path) for path in (words[first - 1], *left_over)]
    ending = collections.Counter(path.suffix for path in paths).most_common(1)[0][0]
    glob = str(Path(min(str(path.parent) for path in paths), f"*{ending}"))
    return (
        f"{flag} takes one path or quoted glob, but {quantity(len(left_over), 'more path')} "
        f"came after it ({named}); quote the glob so that the shell does not expand it: "
        f"{flag} {shlex.quote(glob)}"
    )
