"""Makes a click command out of config sections, so that flags, YAML and `--set` never drift."""

from __future__ import annotations

import dataclasses
import importlib
import json
from collections.abc import Iterator
from typing import Any

import click

from bert_tf.base.console import Console
from bert_tf.base.errors import ConfigError
from bert_tf.config.resolve import resolve
from bert_tf.config.section import Section, argument_text, field_type, flag_text
from bert_tf.config.sections import SECTIONS
from bert_tf.config.variants import Variants
from pipeline.cli.job_help import JobCommand, ListedArgument
from pipeline.cli.startup.third_party_output import VERBOSE_HELP, filtered_third_party_output
from pipeline.cli.usage import HELP_FLAGS, ConfigChoice
from pipeline.outputs.job import RunOptions
from pipeline.outputs.rejected_rows import RejectLimit, excess_of

_COMMON = (
    click.Option(["--config"], metavar="FILE.yaml", help="YAML file with one section per command"),
    click.Option(
        ["--set", "assignments"],
        multiple=True,
        metavar="section.key=value",
        help="set any key of the command's config; repeatable",
    ),
    click.Option(["--overwrite"], is_flag=True, help="replace an output of another config"),
    click.Option(["--json", "as_json"], is_flag=True, help="print the manifest on stdout"),
    click.Option(["--verbose"], is_flag=True, help=VERBOSE_HELP),
)

_LONGEST_EXAMPLE = 90  # characters of a line, indented


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


_RESUME = click.Option(
    ["--resume"],
    is_flag=True,
    help="resume from the last checkpoint (the default; reports if there is none)",
)


def job_command(
    name: str,
    *sections: type[Section] | Variants,
    job: str,
    summary: str,
    example: str,
    resumes: bool = False,
    has_rows: bool = False,
    max_rejects: str | None = None,
) -> JobCommand:
    """Builds the command that resolves its sections and runs a job on them.

    Args:
        name: the command's name.
        sections: config sections, in the order the job's `run` takes them; of `Variants` the one
            that the command line chooses.
        job: module with `run(*sections, options) -> manifest`, imported when the command runs.
        summary: first paragraph of the help.
        example: a command line to copy.
        resumes: whether the job has `--resume`.
        has_rows: whether the job has `--max-rejects`.
        max_rejects: its default; None allows any number.
    """

    def invoke(
        config: str | None,
        assignments: tuple[str, ...],
        overwrite: bool,
        as_json: bool,
        verbose: bool,
        max_rejects: RejectLimit | None = None,
        resume: bool = False,
        **flags: Any,
    ) -> int:
        _check_sections(name, sections, assignments)
        resolved = [
            _resolve(
                section,
                config_file=config,
                assignments=assignments,
                flags={
                    field.name: flags[field.name]
                    for _, field in _fields(section)
                    if field.name in flags
                },
            )
            for section in sections
        ]
        with filtered_third_party_output(verbose=verbose) as own_stderr:
            options = RunOptions(
                overwrite=overwrite,
                resume=resume,
                max_rejects=max_rejects,
                console=Console(own_stderr),
            )
            manifest = importlib.import_module(job).run(*resolved, options)
            if as_json:
                click.echo(json.dumps(manifest, indent=2, ensure_ascii=False))
            return _exit_code(manifest, resolved[0], options)

    common: list[click.Parameter] = []
    rest: list[click.Parameter] = []
    for each in sections:
        for section, field in _fields(each):
            if field.metadata["positional"]:
                common.append(_argument(field))
            elif not field.metadata["advanced"]:
                (common if _is_common(field) else rest).append(_flag(section, field))
    return JobCommand(
        name,
        callback=invoke,
        common=common,
        rest=rest,
        general=[
            *_COMMON,
            *([_max_rejects(max_rejects)] if has_rows else []),
            *([_RESUME] if resumes else []),
        ],
        further_keys=_further_keys(sections),
        help=f"{summary}\n\n\b\nExample:\n{_indent(example)}",
        context_settings={**HELP_FLAGS, "max_content_width": 100},
    )


def _fields(
    section: type[Section] | Variants,
) -> Iterator[tuple[type[Section], dataclasses.Field]]:
    """The fields of a section, or of all variants, each once, with the section they are from."""
    seen = set()
    variants = (
        [section.common, *section.sections.values()] if isinstance(section, Variants) else [section]
    )
    for variant in variants:
        for field in _in_help_order(variant):
            if field.name not in seen:
                seen.add(field.name)
                yield variant, field


def _resolve(section: type[Section] | Variants, **sources: Any) -> Section:
    if isinstance(section, Variants):
        return section.resolve(**sources)
    return resolve(section, **sources)


def _in_help_order(section: type[Section]) -> list[dataclasses.Field]:
    """Fields as help lists them: those of input, output and model in this order; of the others a
    section's own before what it inherits."""

    def place(field: dataclasses.Field) -> tuple[int, int]:
        if _is_common(field):
            return 0, -1 if field.metadata["positional"] else int(field.name == "output")
        classes = enumerate(section.__mro__)
        return 1, next(depth for depth, each in classes if field.name in each.__annotations__)

    return sorted(dataclasses.fields(section), key=place)


def _is_common(field: dataclasses.Field) -> bool:
    return field.metadata["required"] or field.metadata["common"]


def _check_sections(
    name: str, sections: tuple[type[Section] | Variants, ...], assignments: tuple[str, ...]
) -> None:
    read = [section.section_name for section in sections]
    others = set(SECTIONS).difference(read)
    faults = [
        f"--set {assignment}: {name} reads {' and '.join(read)} alone"
        for assignment in assignments
        if assignment.partition(".")[0] in others
    ]
    if faults:
        raise ConfigError(faults)


def _exit_code(manifest: dict[str, Any], config: Section, options: RunOptions) -> int:
    if options.max_rejects is None or not manifest:
        return 0
    excess = excess_of(options.max_rejects, config, manifest["counts"])
    if excess is None:
        return 0
    options.console.info(f"error: {excess}")
    return 3


def _max_rejects(default: str | None) -> click.Option:
    return click.Option(
        ["--max-rejects"],
        type=_LimitType(),
        default=default,
        metavar="N|FRACTION",
        help=(
            "exit with code 3 if more rows are rejected: a number of rows (10) or a fraction of "
            f"them (0.1 or 10%) (default: {default or 'any number'})"
        ),
    )


def _argument(field: dataclasses.Field) -> click.Argument:
    # Not required here: a YAML file may have it, and resolving says in which words it is missing.
    return ListedArgument(
        [field.name],
        required=False,
        metavar=argument_text(field),
        doc=f"{field.metadata['doc']} (required)",
    )


def _flag(section: type[Section], field: dataclasses.Field) -> click.Option:
    kind, many, _ = field_type(section, field.name)
    metadata = field.metadata
    spelling = flag_text(field)
    note = "" if metadata["required"] or field.default is None else f" [{_shown(field.default)}]"
    if metadata["required"]:
        note = " (required)"
    if kind is bool:
        if "/" not in spelling:
            spelling = f"{spelling}/--no-{spelling.removeprefix('--')}"
        return click.Option([spelling, field.name], default=None, help=metadata["doc"] + note)
    return click.Option(
        [spelling, field.name],
        multiple=many,
        type=ConfigChoice(metadata["choices"]) if metadata["choices"] else str,
        metavar=None if metadata["choices"] else {int: "N", float: "X"}.get(kind, "TEXT"),
        help=metadata["doc"] + note,
    )


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"[{', '.join(value)}]" if isinstance(value, tuple) else str(value)


def _further_keys(sections: tuple[type[Section] | Variants, ...]) -> list[tuple[str, str]]:
    return [
        (f"{section.section_name}.{field.name}{_default(field)}", field.metadata["doc"])
        for each in sections
        for section, field in _fields(each)
        if field.metadata["advanced"]
    ]


def _default(field: dataclasses.Field) -> str:
    return "" if field.default is None else f"={_shown(field.default)}"


def _indent(example: str) -> str:
    """The example's lines, those that are too long continued before an option."""
    lines = []
    for line in example.strip().splitlines():
        first, *options = line.split(" --")
        lines.append("  " + first)
        for option in options:
            if len(lines[-1]) + len(option) > _LONGEST_EXAMPLE:
                lines[-1] += " \\"
                lines.append("     ")
            lines[-1] += " --" + option
    return "\n".join(lines)
