"""A command of config sections and a job, for click and `pipeline.api`.

Options become a config, whose faults are all reported at once. Then `preflight.py` checks paths and
columns. Only then the job's module is imported, which takes seconds.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import sys
from collections.abc import Mapping
from functools import cached_property, partial
from typing import Any

import click

from bert_tf.base.console import Console
from bert_tf.base.errors import (
    BertPipelineError,
    ConfigError,
    InputError,
    TooManyRejects,
    UsageError,
)
from bert_tf.base.wording import listed, printable
from bert_tf.config.resolve import Variants, resolve
from bert_tf.config.section import Section
from bert_tf.config.sections import SECTIONS
from pipeline.cli.config_options import AnySection, JobCommand, section_fields
from pipeline.cli.preflight import check_request
from pipeline.cli.startup import filtered_third_party_output
from pipeline.cli.usage import HELP_FLAGS, QUIET_HELP, VERBOSE_HELP, PathText
from pipeline.outputs.job_spec import RunOptions
from pipeline.outputs.manifest import already_finished
from pipeline.outputs.rejects import RejectLimit, excess_of

_COMMON = (
    click.Option(
        ["--config"],
        metavar="FILE.yaml",
        type=PathText(),
        help="YAML config file with one section per command",
    ),
    click.Option(
        ["--set", "assignments"],
        multiple=True,
        metavar="section.key=value",
        help="set a config key of the command; repeatable",
    ),
    click.Option(
        ["--overwrite"], is_flag=True, help="replace an output that was made with another config"
    ),
    click.Option(["--json", "as_json"], is_flag=True, help="print the manifest as JSON"),
    click.Option(["--quiet"], is_flag=True, help=QUIET_HELP),
    click.Option(["--verbose"], is_flag=True, help=VERBOSE_HELP),
)
_STRICT = click.Option(
    ["--strict"],
    is_flag=True,
    help="exit with code 1 if the health check of the output has warnings; the output is kept",
)
_RESUME = click.Option(
    ["--resume"],
    is_flag=True,
    help="resume from the latest checkpoint (the default; logs a line if there is none)",
)
_RUN_OPTIONS = frozenset(
    ("overwrite", "resume", "max_rejects", "strict")
)  # flags that are no config keys
_FORKED_AFTER_TENSORFLOW: list[int] = []  # this process, if it was
_LONGEST_EXAMPLE = 90  # characters of a line, indented


class _LimitType(click.ParamType):
    """The number or fraction of `--max-rejects`."""

    name = "limit"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> RejectLimit:
        try:
            return value if isinstance(value, RejectLimit) else RejectLimit.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


@dataclasses.dataclass(frozen=True, kw_only=True)
class JobCall:
    """A command that resolves config sections and runs a job on them.

    It is called with the options that click has parsed; `pipeline.api` calls its parts.

    Attributes:
        section: config section with the command's name.
        job: module of `pipeline.jobs` with `run(*sections, options) -> manifest`, imported when it
            runs.
        where: section of the runner or the storage.
        tasks: declarations of the tasks whose options the command has; its key `task` chooses.
        summary: first paragraph of the help; by default the docstring of the section.
        summary_of_task: the same for a task, with its summary as `{}`; without one, tasks have no
            help of their own.
        example: command lines for the help.
        resumes: whether the command has `--resume`.
        has_rows: whether the job has `--max-rejects`.
        max_rejects: the default of that; None allows any number.
        has_health: whether the job has `--strict`.
    """

    section: type[Section]
    job: str
    where: type[Section] | None = None
    tasks: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    summary: str = ""
    summary_of_task: str = ""
    example: str = ""
    resumes: bool = False
    has_rows: bool = False
    max_rejects: str | None = None
    has_health: bool = False

    @property
    def name(self) -> str:
        """Return the command's name."""
        return self.section.section_name.replace("_", "-")

    @cached_property
    def sections(self) -> tuple[AnySection, ...]:
        """Return the config sections in the order in which the job's `run` takes them."""
        options = {name: task.options for name, task in self.tasks.items()}
        variants = Variants(common=self.section, key="task", sections=options)
        return (variants if options else self.section, *filter(None, [self.where]))

    @property
    def about(self) -> str:
        """Return the first text of the help: the summary, or the docstring of the section."""
        return self.summary or " ".join((self.section.__doc__ or "").split())

    def tasks_of_keys(self) -> dict[str, list[str]]:
        """Return the tasks that have a key, by key; keys of every task are left out."""
        tasks: dict[str, list[str]] = {}
        common = {field.name for field in dataclasses.fields(self.section)}
        for name, task in self.tasks.items():
            for field in dataclasses.fields(task.options):
                if field.name not in common:
                    tasks.setdefault(field.name, []).append(name)
        return tasks

    def command(self) -> JobCommand:
        """Return the command for click, with one of its own for the help of each task."""
        example = "\n".join((self.example, *(task.example for task in self.tasks.values())))
        command = JobCommand(
            self.name,
            self.sections,
            self._general_options(),
            callback=self,
            help=f"{self.about}\n\n\b\nExample:\n{_indent(example)}",
            context_settings={**HELP_FLAGS, "max_content_width": 100},
        )
        if self.tasks and self.summary_of_task:
            without_task = dataclasses.replace(self, tasks={}, example=example)
            command.helps = {"": without_task.command()}
            for name, task in self.tasks.items():
                of_task = dataclasses.replace(
                    without_task,
                    section=task.options,
                    summary=self.summary_of_task.format(task.summary),
                    example=task.example,
                )
                command.helps[name] = of_task.command()
                for parameter in command.helps[name].params:
                    if isinstance(parameter, click.Argument):
                        parameter.metavar = name
        return command

    def _general_options(self) -> list[click.Parameter]:
        """Return the options of the job that are no config keys."""
        max_rejects = click.Option(
            ["--max-rejects"],
            type=_LimitType(),
            default=self.max_rejects,
            metavar="N|FRACTION",
            help="exit with code 3 if more rows are rejected than this number (10) or fraction "
            f"(0.1 or 10%) [default: {self.max_rejects or 'any number'}]",
        )
        options: list[click.Parameter] = [*_COMMON]
        if self.has_rows:
            options.append(max_rejects)
        if self.has_health:
            options.append(_STRICT)
        if self.resumes:
            options.append(_RESUME)
        return options

    def __call__(
        self,
        config: str | None,
        assignments: tuple[str, ...],
        as_json: bool,
        quiet: bool,
        verbose: bool,
        **options: Any,
    ) -> int:
        """Run the command with the options that click has parsed.

        Args:
            config: path of a YAML file.
            assignments: `section.key=value` texts.
            as_json: whether to print the manifest.
            quiet: whether to print only warnings and errors.
            verbose: whether to print all output of libraries.
            **options: options that are config keys, and those of the run.

        Returns:
            The exit code.
        """
        of_run = {name: options.pop(name) for name in _RUN_OPTIONS & options.keys()}
        resolved = self.resolve(config, options, assignments)
        with filtered_third_party_output(verbose=verbose) as (own_stderr, log):
            journal = None if log is None else log.write
            console = Console(own_stderr, quiet=quiet, journal=journal)
            run_options = RunOptions(console=console, log=log, config_file=config, **of_run)
            try:
                manifest = self.run(resolved, run_options)
            except Exception as error:
                if log is not None:
                    log.note_failure(error)
                raise
            if as_json:
                click.echo(json.dumps(manifest, indent=2, ensure_ascii=False))
            complaint = complaint_of_run(manifest, resolved[0], run_options)
            if complaint is None:
                return 0
            for line in str(complaint).splitlines():
                click.echo(printable(f"error: {line}"), file=own_stderr)
            return complaint.exit_code

    def run(self, resolved: list[Section], options: RunOptions) -> dict[str, Any]:
        """Run the job unless its output is finished.

        Args:
            resolved: the sections, in the order of `sections`.
            options: of the run.

        Returns:
            The manifest, with `already_done` if the job did not run.

        Raises:
            UsageError: the process was forked after TensorFlow was used.
            BertPipelineError: the request is wrong, or the job failed.
        """
        finished = check_request(self.name, resolved, overwrite=options.overwrite)
        if finished is not None:
            options.console.info(already_finished(resolved[0].output))  # type: ignore[attr-defined]
            return {**finished, "already_done": True}
        if _FORKED_AFTER_TENSORFLOW:
            raise UsageError(
                f"{self.name}: this process was forked from one that had used TensorFlow, whose "
                "threads are missing here, so it would hang; start it with "
                "multiprocessing.get_context('spawn'), or before the first job"
            )
        with options.console.waiting(f"{self.name}: loading libraries"):  # seconds
            job = importlib.import_module(f"pipeline.jobs.{self.job}")
        manifest: dict[str, Any] = job.run(*resolved, options)
        return manifest

    def resolve(
        self, config: str | None, flags: dict[str, Any], assignments: tuple[str, ...] = ()
    ) -> list[Section]:
        """Build the sections from YAML, flags and `--set`.

        Args:
            config: path of a YAML file.
            flags: values by key; those of other sections are left out.
            assignments: `section.key=value` texts.

        Returns:
            The sections, in the order of `sections`.

        Raises:
            ConfigError: with all faults.
        """
        read = [section.section_name for section in self.sections]
        others = set(SECTIONS).difference(read)
        faults = [
            f"--set {assignment}: {self.name} only reads {' and '.join(read)}"
            for assignment in assignments
            if assignment.partition(".")[0] in others
        ]
        if faults:
            raise ConfigError(faults)
        resolved = []
        for section in self.sections:
            make = section.resolve if isinstance(section, Variants) else partial(resolve, section)
            names = {field.name for _, field in section_fields(section)}
            own = {name: value for name, value in flags.items() if name in names}
            resolved.append(make(config_file=config, assignments=assignments, flags=own))
        return resolved


def _note_fork() -> None:
    """Remember that this process was forked from one in which TensorFlow had started threads."""
    runtime = getattr(sys.modules.get("tensorflow.python.eager.context"), "_context", None)
    if getattr(runtime, "_initialized", False):
        _FORKED_AFTER_TENSORFLOW.append(os.getpid())


os.register_at_fork(after_in_child=_note_fork)


def complaint_of_run(
    manifest: dict[str, Any], config: Section, options: RunOptions
) -> BertPipelineError | None:
    """Return the error of a finished job: too many rejects, drift, or `--strict` warnings.

    Args:
        manifest: of the job.
        config: its first section.
        options: with the limit and `strict`.

    Returns:
        The error, whose lines the caller prints; None without a complaint.
    """
    if manifest.get("already_done") and config.as_dict().get("update"):
        return None  # these rows were reported when they were scored
    if options.max_rejects is not None and "counts" in manifest:  # a dry run has none
        excess = excess_of(options.max_rejects, config, manifest["counts"])
        if excess is not None:
            return TooManyRejects(excess)
    drifts = manifest.get("drift", ())
    drifted = [drift["source"] for drift in drifts if not drift["is_like_training"]]
    if "files" in manifest:  # an update: other files were reported when they were scored
        drifted = [source for source in drifted if source in manifest["files"]["scored"]]
    if drifted and config.as_dict().get("fail_on_drift"):
        return InputError(
            f"{listed(drifted)}: finished, but --fail-on-drift: rows differ from the training rows"
        )
    notes = manifest.get("notes", []) if options.strict else []
    if not notes:
        return None
    output = config.as_dict()["output"]
    return InputError("\n".join(f"{output}: finished, but --strict: {note}" for note in notes))


def _indent(example: str) -> str:
    """Indent the example, and break long lines before an option."""
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
