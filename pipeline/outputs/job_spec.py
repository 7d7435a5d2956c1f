"""Jobs as they are asked for: the config and inputs that decide an output, and how it is made."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.config.section import Section, field_type, fields_of, former_defaults, plain_values
from pipeline.outputs.choices import CHOSEN
from pipeline.outputs.inputs import CheckedInputs, Inputs
from pipeline.outputs.job_folder import JobFolder
from pipeline.outputs.job_log import JobLog
from pipeline.outputs.lock import holding_output
from pipeline.outputs.place import OutputPlace
from pipeline.outputs.rejects import RejectLimit


@dataclasses.dataclass(frozen=True, kw_only=True)
class JobSpec:
    """A job: its output, and all that decides it.

    Attributes:
        config: resolved; its key `output` names the file or folder to make.
        inputs: files and folders to read, by the config key that names them. Their fingerprints
            identify the output, in place of the values of these keys.
        is_folder: None: as `output` is declared (`writes`).
        checked_inputs: which files of an input folder are compared with `SHA256SUMS` while they are
            fingerprinted.
        ignored_keys: keys that do not change this output's content, besides those declared so
            (`affects_output`).
        can_resume: whether to go on from an interrupted run's files; if not, they are removed
            first.
        extendable_key: key of which a larger value continues an otherwise equal output; needs
            `can_resume`.
        reads_inputs_first: whether changes after that cannot reach the output, and only cause a
            warning.
        temporary: folder of intermediate data, in an output folder or beside a file; removed at the
            end.
        may_be_remote: whether the work only writes by paths of `path_of`.
        is_update: whether files are added to a finished folder.
        open_keys: keys that the user has left to the job, before the config had the choices of an
            earlier run.
    """

    config: Section
    inputs: Inputs
    is_folder: bool | None = None
    checked_inputs: CheckedInputs = dataclasses.field(default_factory=dict)
    ignored_keys: tuple[str, ...] = ()
    can_resume: bool = False
    extendable_key: str | None = None
    reads_inputs_first: bool = False
    temporary: Path | None = None
    may_be_remote: bool = False
    is_update: bool = False
    open_keys: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        return self.config.section_name.replace("_", "-")

    @property
    def output(self) -> str:
        return str(self.config.as_dict()["output"])

    @functools.cached_property
    def place(self) -> OutputPlace:
        is_folder = self.is_folder
        if is_folder is None:
            is_folder = fields_of(self.config)["output"].metadata["writes"] == "folder"
        return OutputPlace(
            output=self.output,
            is_directory=is_folder,
            temporary=self.temporary,
            may_be_remote=self.may_be_remote,
        )

    @functools.cached_property
    def kept_config(self) -> dict[str, Any]:
        """Return config values that decide the output."""
        return self._kept(self.config.as_dict())

    @property
    def choices(self) -> dict[str, list[str]]:
        """Return notes about keys that the job may choose; {} if its section has none."""
        return {CHOSEN: list(self.open_keys)} if former_defaults(self.config) else {}

    def open_folder(self) -> JobFolder:
        """Return the output as it is now."""
        return JobFolder(self.place, self.config.section_name)

    def holding(self, console: Console) -> AbstractContextManager[Callable[[], None]]:
        return holding_output(self.place, self.command, console)

    def different_keys(self, config: Mapping[str, Any]) -> list[str]:
        """Return the keys in which the config differs from a saved one, other than an extension."""
        before, now = self.saved(config), self.kept_config
        extended = self.extendable_key if self.is_extended(config) else None
        return [key for key in now if before.get(key) != now[key] and key != extended]

    def check_marker(self, marker: Mapping[str, Any] | None) -> bool:
        """Check that unfinished work is of this job.

        Args:
            marker: see `JobFolder.marker`.

        Returns:
            Whether this job asks for more of the same, such as steps.

        Raises:
            UsageError: its config decides another output.
        """
        values = (marker or {}).get(self.config.section_name, {})  # of no other section
        saved = plain_values(type(self.config), values)
        if self.different_keys(saved):
            raise UsageError(
                f"{self.output}: contains an unfinished run with another config (see "
                f"{self.place.marker}); choose another --output or replace it with --overwrite"
            )
        return self.is_extended(saved)

    def differences(self, config: Mapping[str, Any], keys: Iterable[str]) -> list[str]:
        """Say how the values of keys differ from those of a saved config."""
        before, now = self.saved(config), self.kept_config
        hints = {self.extendable_key: ", and it cannot be shortened"}
        left = former_defaults(self.config)

        def named(key: str, value: Any) -> str:
            return "chosen by the job" if value is None and key in left else repr(value)

        return [
            f"{key}: {named(key, before.get(key))} then, {named(key, now[key])} now"
            f"{'' if now[key] is None else hints.get(key, '')}"
            for key in keys
        ]

    def is_extended(self, config: Mapping[str, Any]) -> bool:
        """Return whether the config asks for more of the key, such as steps, than a saved one."""
        if self.extendable_key is None:
            return False
        before = self.saved(config).get(self.extendable_key)
        now = self.kept_config[self.extendable_key]
        return isinstance(before, int | float) and isinstance(now, int | float) and now > before

    def saved(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return values of a saved config, perhaps an earlier release's, that decide the output."""
        return self._kept(with_defaults(type(self.config), config))

    def _kept(self, values: Mapping[str, Any]) -> dict[str, Any]:
        fields = dataclasses.fields(self.config)
        without_effect = [each.name for each in fields if not each.metadata["affects_output"]]
        named = map(config_key, self.inputs)
        return kept_keys(values, ("output", *without_effect, *named, *self.ignored_keys))


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a command runs; none of this decides its output.

    Attributes:
        overwrite: whether to replace an output of another config.
        strict: whether warnings about the result are errors.
        is_part: whether another job runs this one and reports its result.
        log: kept beside the output once the job begins its work.
        config_file: given by `--config`; None without one.
    """

    overwrite: bool = False
    resume: bool = False
    max_rejects: RejectLimit | None = None
    strict: bool = False
    console: Console = dataclasses.field(default_factory=Console)
    is_part: bool = False
    log: JobLog | None = None
    config_file: str | None = None


def kept_keys(config: Mapping[str, Any], ignored_keys: tuple[str, ...]) -> dict[str, Any]:
    """Return values without ignored keys; `list.key` leaves one out of every item of a list."""
    kept = {key: value for key, value in config.items() if key not in ignored_keys}
    for ignored in ignored_keys:
        name, dot, inner = ignored.partition(".")
        if dot and isinstance(kept.get(name), list):
            kept[name] = [
                {key: value for key, value in item.items() if key != inner}
                for item in kept[name]
                if isinstance(item, Mapping)  # a marker edited by hand may hold anything
            ]
    return kept


def with_defaults(section: type[Section], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a saved config with the keys that an earlier release lacked, as their defaults."""
    complete = {**section().as_dict(), **former_defaults(section), **config}
    for field in dataclasses.fields(section):
        kind, is_list, *_ = field_type(section, field.name)
        items = complete[field.name]
        if is_list and issubclass(kind, Section) and isinstance(items, list):
            complete[field.name] = [
                with_defaults(kind, item) if isinstance(item, Mapping) else item for item in items
            ]
    return complete


def config_key(key: str) -> str:
    """Return the config key in a key of `Inputs`: `phases.data` for `phases[0].data`."""
    return re.sub(r"\[.*\]", "", key)


def check_made_by(output: str, finished: Mapping[str, Any], command: str) -> None:
    """Raise UsageError if another command made a finished output."""
    if finished.get("command") != command:
        raise UsageError(
            f"{output}: made by bert-pipeline {finished.get('command')}; "
            "choose another --output or replace it with --overwrite"
        )


def check_no_differences(output: str, differences: Sequence[str]) -> None:
    """Raise UsageError if there are differences between an output's config and the command's."""
    if differences:
        raise UsageError(
            f"{output}: made with another config ({'; '.join(differences)}); "
            "choose another --output or replace it with --overwrite"
        )
