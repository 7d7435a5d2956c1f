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
from pipeline.cli.startup.third_party_output import VERBOSE_HELP, filtered_third_party_output
from pipeline.cli.usage import HELP_FLAGS, ConfigChoice, PlainCommand
from pipeline.outputs.job import RunOptions
from pipeline.outputs.rejected_rows import RejectLimit, excess_of

_COMMON = (
    click.Option(["--config"], metavar="FILE.yaml", help="YAML file with a section a command"),
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
    help="go on from the last checkpoint (done anyway; says where there is none)",
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
) -> PlainCommand:
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

    parameters: list[click.Parameter] = []
    for each in sections:
        for section, field in _fields(each):
            if field.metadata["positional"]:
                parameters.append(_argument(field))
            elif not field.metadata["advanced"]:
                parameters.append(_flag(section, field))
    return PlainCommand(
        name,
        callback=invoke,
        params=[
            *parameters,
            *_COMMON,
            *([_max_rejects(max_rejects)] if has_rows else []),
            *([_RESUME] if resumes else []),
        ],
        help=f"{summary}\n\n\b\nExample:\n{_indent(example)}\n\n\b\n{_advanced_keys(sections)}",
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
        for field in dataclasses.fields(variant):
            if field.name not in seen:
                seen.add(field.name)
                yield variant, field


def _resolve(section: type[Section] | Variants, **sources: Any) -> Section:
    if isinstance(section, Variants):
        return section.resolve(**sources)
    return resolve(section, **sources)


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
    options.console.say(f"error: {excess}")
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
    return click.Argument([field.name], required=False, metavar=argument_text(field))


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
    if isinstance(value, tuple) and value:
        return f"[{', '.join(value)}]"
    return str(value) or "none"


def _advanced_keys(sections: tuple[type[Section] | Variants, ...]) -> str:
    lines = [
        f"  {section.section_name}.{field.name}={_shown(field.default)}  {field.metadata['doc']}"
        for each in sections
        for section, field in _fields(each)
        if field.metadata["advanced"]
    ]
    return "Further keys, for --config and --set:\n" + "\n".join(lines) if lines else ""


def _indent(text: str) -> str:
    return "\n".join("  " + line for line in text.strip().splitlines())
