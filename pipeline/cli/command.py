"""Makes a click command out of config sections and a job."""

from __future__ import annotations

import dataclasses
import importlib
import json
from typing import Any

import click

from bert_tf.base.console import Console
from bert_tf.base.errors import ConfigError
from bert_tf.config.resolve import resolve
from bert_tf.config.section import Section
from bert_tf.config.sections import SECTIONS
from bert_tf.config.variants import Variants
from pipeline.cli.config_options import AnySection, config_options, section_fields
from pipeline.cli.general_options import general_options
from pipeline.cli.job_help import JobCommand
from pipeline.cli.startup.third_party_output import filtered_third_party_output
from pipeline.cli.usage import HELP_FLAGS
from pipeline.outputs.job import RunOptions
from pipeline.outputs.rejected_rows import RejectLimit, excess_of

_LONGEST_EXAMPLE = 90  # characters of a line, indented


def job_command(
    name: str,
    *sections: AnySection,
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
    options = config_options(sections)
    return JobCommand(
        name,
        callback=_JobCall(name=name, sections=sections, job=job),
        common=options.common,
        rest=options.rest,
        general=general_options(resumes=resumes, has_rows=has_rows, max_rejects=max_rejects),
        further_keys=options.further_keys,
        help=f"{summary}\n\n\b\nExample:\n{_indent(example)}",
        context_settings={**HELP_FLAGS, "max_content_width": 100},
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class _JobCall:
    """Runs a job with what click has parsed."""

    name: str
    sections: tuple[AnySection, ...]
    job: str

    def __call__(
        self,
        config: str | None,
        assignments: tuple[str, ...],
        overwrite: bool,
        as_json: bool,
        verbose: bool,
        max_rejects: RejectLimit | None = None,
        resume: bool = False,
        **flags: Any,
    ) -> int:
        """Returns the exit code."""
        resolved = self._resolve(config, assignments, flags)
        with filtered_third_party_output(verbose=verbose) as own_stderr:
            options = RunOptions(
                overwrite=overwrite,
                resume=resume,
                max_rejects=max_rejects,
                console=Console(own_stderr),
            )
            with options.console.waiting(f"{self.name}: loading libraries"):  # seconds
                job = importlib.import_module(self.job)
            manifest = job.run(*resolved, options)
            if as_json:
                click.echo(json.dumps(manifest, indent=2, ensure_ascii=False))
            return _exit_code(manifest, resolved[0], options)

    def _resolve(
        self, config: str | None, assignments: tuple[str, ...], flags: dict[str, Any]
    ) -> list[Section]:
        """The sections, from the file, `--set` and flags."""
        _check_sections(self.name, self.sections, assignments)
        return [
            _resolve(
                section,
                config_file=config,
                assignments=assignments,
                flags={
                    field.name: flags[field.name]
                    for _, field in section_fields(section)
                    if field.name in flags
                },
            )
            for section in self.sections
        ]


def _resolve(section: AnySection, **sources: Any) -> Section:
    if isinstance(section, Variants):
        return section.resolve(**sources)
    return resolve(section, **sources)


def _check_sections(
    name: str, sections: tuple[AnySection, ...], assignments: tuple[str, ...]
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
