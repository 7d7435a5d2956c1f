"""The commands as functions: keyword arguments are config keys, manifests are returned.

    from pipeline import finetune, score

    manifest = finetune("classification", train="train.csv", init="bert", output="complaints")
    manifest["metrics"]["best"]

Nothing heavy is imported before a function is called.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.base.library_output import quiet_in_ipython
from bert_tf.config.section import Section, field_type, likely_key
from bert_tf.training.memory import release_memory

if TYPE_CHECKING:
    from pipeline.cli.command import JobCall

_HELP_WIDTH = 96  # characters of a line below a key
# What every function takes beside config keys, as `Job.__call__` describes it.
_GENERAL_HELP = """\
Calling it again for a finished output does nothing; an interrupted job resumes. Returns the
manifest. Beside config keys it takes config (a YAML file, whose keys these arguments win over),
overwrite, max_rejects, strict and console: see help(type({name}))."""


class _KeyListing:
    """The docstring of `Job`; on a job, text for `help` that lists the config keys of its command.

    Made when it is asked for, since declarations of keys are imported with a command.
    """

    def __init__(self, of_class: str):
        self._of_class = of_class

    def __get__(self, job: Job | None, owner: type | None = None) -> str:
        return self._of_class if job is None else job._help()


@dataclasses.dataclass(frozen=True)
class Job:
    """A command of `bert-pipeline`, by its name, as a function; `help` lists its config keys."""

    __doc__ = _KeyListing(__doc__)

    name: str

    def __call__(
        self,
        *positional: str,
        config: str | Path | None = None,
        overwrite: bool = False,
        max_rejects: str | float | None = None,
        strict: bool = False,
        console: Console | None = None,
        **keys: Any,
    ) -> dict[str, Any]:
        """Run the job, or resume it; do nothing if its output is finished.

        Args:
            positional: arguments without a flag: the task of `finetune`.
            config: YAML file, whose keys `keys` win over.
            overwrite: replace an output made with another config.
            max_rejects: how many rows may be rejected, a number (10) or a fraction (0.1 or "10%");
                by default as many as the command allows.
            strict: take the warnings of the health check of `vocab` and `preprocess` as errors.
            console: where progress goes; stderr by default.
            **keys: config keys, by the names that they have in YAML. Paths may be `Path`s.

        Returns:
            The manifest.

        Raises:
            ConfigError: a key is unknown, or its value cannot be used; all faults at once.
            UsageError, InputError: as the command's errors.
            TooManyRejects: more rows than `max_rejects`; the output is there. Likewise an
                InputError with `strict`.
        """
        from pipeline.cli.command import complaint_of_run
        from pipeline.outputs.job_spec import RunOptions
        from pipeline.outputs.rejects import RejectLimit

        os.environ.setdefault("KERAS_BACKEND", "tensorflow")
        call = self._call()
        values = {**self._named(positional), **{key: _plain(value) for key, value in keys.items()}}
        known = {field.name for _, field in self._keys()}
        unknown = values.keys() - known
        if unknown:
            listing = f"help(pipeline.{self.name.replace('-', '_')}) lists the keys"
            raise UsageError(
                "\n".join(
                    f"{self.name}: no config key {key}; {likely_key(key, known, listing=listing)}"
                    for key in sorted(unknown)
                )
            )
        if strict and not call.has_health:
            raise UsageError(f"{self.name}: has no health check; leave strict out")
        resolved = call.resolve(None if config is None else os.fspath(config), values)
        # Like the command line, where the default is text, too.
        limit = call.max_rejects if max_rejects is None else str(max_rejects)
        try:
            parsed = None if limit is None else RejectLimit.parse(limit)
        except ValueError as error:
            raise UsageError(f"{self.name}: max_rejects: {error}") from None
        with quiet_in_ipython() as own_stderr:
            options = RunOptions(
                overwrite=overwrite,
                max_rejects=parsed,
                strict=strict,
                console=console or Console(own_stderr),
            )
            try:
                manifest = call.run(resolved, options)
            finally:
                release_memory()
        complaint = complaint_of_run(manifest, resolved[0], options)
        if complaint is not None:
            raise complaint
        return manifest

    @property
    def __signature__(self) -> inspect.Signature:
        """Return all config keys with their defaults, for editors and notebooks."""
        own = list(inspect.signature(Job.__call__).parameters.values())[1:-1]
        keys = [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if field.metadata["required"] else field.default,
                annotation=str(field_type(section, field.name)),
            )
            for section, field in self._keys()
        ]
        return inspect.Signature([*own, *keys], return_annotation=dict[str, Any])

    def _help(self) -> str:
        """Return the text of `help`: what the command does, and all its config keys."""
        call = self._call()
        keys = self._keys()
        function = self.name.replace("-", "_")
        needed = [field.name for _, field in keys if field.metadata["required"]]
        summary, _, listing = call.about.partition("\n\n\b\n")  # \b: a paragraph for click
        lines = [
            f"{function}({', '.join(needed)}, …)",
            "",
            *textwrap.wrap(summary, _HELP_WIDTH),
            "",
            *(f"{listing}\n\n" if listing else "").splitlines(),
            _GENERAL_HELP.format(name=function),
            "",
            "Config keys; those without a default are required:",
        ]
        tasks_of = call.tasks_of_keys()
        for section, field in keys:
            lines += _key_help(section, field, tasks_of.get(field.name, ()))
        return "\n".join(lines)

    def _call(self) -> JobCall:
        from pipeline.cli.jobs import JOBS

        return JOBS[self.name]

    def _keys(self) -> list[tuple[type[Section], dataclasses.Field]]:
        """Return the fields of the command's sections, each with its section."""
        from pipeline.cli.config_options import section_fields

        return [key for each in self._call().sections for key in section_fields(each)]

    def _named(self, positional: Sequence[str]) -> dict[str, str]:
        """Return arguments without a name by their keys."""
        names = [field.name for _, field in self._keys() if field.metadata["positional"]]
        if len(positional) > len(names):
            raise TypeError(
                f"{self.name} takes {len(names)} arguments without a name, not {len(positional)}"
            )
        return dict(zip(names, positional, strict=False))


def _key_help(section: type[Section], field: dataclasses.Field, tasks: Sequence[str]) -> list[str]:
    """Describe a config key in lines: its name, type, default, meaning and choices.

    Args:
        tasks: the only ones that have the key; empty if it does not depend on the task.
    """
    default = "" if field.metadata["required"] else f" = {field.default!r}"
    words = field.metadata["doc"]
    choices = field.metadata["choices"]
    if choices:
        words += f"; one of {', '.join(choices)}"
    if tasks:
        words += f" (only {', '.join(tasks)})"
    indent = " " * 4
    return [
        f"  {field.name}: {field_type(section, field.name)}{default}",
        *textwrap.wrap(words, _HELP_WIDTH, initial_indent=indent, subsequent_indent=indent),
    ]


def _plain(value: Any) -> Any:
    """Return a value as configs have it."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


vocab = Job("vocab")
preprocess = Job("preprocess")
train = Job("train")
finetune = Job("finetune")
label_errors = Job("label-errors")
evaluate = Job("evaluate")
export = Job("export")
score = Job("score")
embed = Job("embed")
search = Job("search")
summarize = Job("summarize")
import_weights = Job("import-weights")
