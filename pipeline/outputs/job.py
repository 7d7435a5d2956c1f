"""The frame of every job: is it done already, may it start, what did it make, what comes next."""

from __future__ import annotations

import dataclasses
import resource
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bert_tf.base.console import Closing, Console
from bert_tf.base.errors import RowsRejected
from bert_tf.base.files import remove
from bert_tf.base.wording import quantity, shown_number
from bert_tf.config.section import Section
from bert_tf.data.tables.rejects import write_rejects
from pipeline.outputs.elapsed import adding_up_seconds, keep_seconds
from pipeline.outputs.identity import (
    CheckedInputs,
    Inputs,
    already_finished,
    are_same_contents,
    check_made_by,
    config_key,
    difference_of,
    different_keys,
    input_fingerprints,
    is_extended,
    kept_keys,
    keys_without_effect,
    made_with_another_config,
    with_defaults,
)
from pipeline.outputs.job_log import JobLog
from pipeline.outputs.lock import holding_output
from pipeline.outputs.manifest import (
    MANIFEST_VERSION,
    describe_files,
    manifest_path,
    package_versions,
    read_manifest,
    rejects_path,
    write_manifest,
)
from pipeline.outputs.place import OutputPlace, check_place
from pipeline.outputs.places import remove_marks, writing_file, writing_folder
from pipeline.outputs.rejects import RejectLimit


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a command runs, as opposed to what it makes: none of this is part of the config.

    Attributes:
        overwrite: replace an output of another config.
        resume: resume from a checkpoint.
        max_rejects: how many rejected rows are too many; None for no limit.
        strict: take warnings about the result as errors.
        console: where lines for the user go.
        is_part: whether another job runs this one and reports what was made itself.
        log: kept beside the output once the job begins its work; None for none.
    """

    overwrite: bool = False
    resume: bool = False
    max_rejects: RejectLimit | None = None
    strict: bool = False
    console: Console = dataclasses.field(default_factory=Console)
    is_part: bool = False
    log: JobLog | None = None


class JobRecord:
    """What a running job reports; it becomes the manifest.

    Attributes:
        counts: whole numbers by name (`rows_in`, `documents`, …; `rejected` may be a mapping from
            reason to number).
        metrics: results by name.
        sha256: of files hashed while they were written, by path in the output folder; the others
            are read again to hash them.
        extra: further manifest keys (schema, vocabulary hash, …).
        made: paths worth telling the user, with a word on each.
        next_command: the command to run next.
        identity: the command, the config keys and the fingerprints of inputs that decide what is
            made, as they stand in the manifest.
        check_held: raises an error if another process has taken the output over.
    """

    def __init__(self, console: Console, identity: dict[str, Any], check_held: Callable[[], None]):
        self.console = console
        self.identity = identity
        self.check_held = check_held
        self.counts: dict[str, Any] = {}
        self.metrics: dict[str, Any] = {}
        self.sha256: dict[str, str] = {}
        self.extra: dict[str, Any] = {}
        self.made: list[tuple[str, str]] = []
        self.next_command: list[str] | None = None
        self.timings: dict[str, float] = {}

    def input_sha256(self, key: str) -> str:
        """The fingerprint of the one input that a config key names."""
        (found,) = (item for item in self.identity["inputs"] if item["key"] == key)
        return str(found["sha256"])

    def report_health(self, line: str, warnings: list[str]) -> None:
        """Tells the user how the result looks; the manifest keeps the warnings."""
        self.console.info(line)
        for warning in warnings:
            self.console.warn(warning)
        self.extra["notes"] = warnings

    def list_rejects(self, path: Path, number: int) -> None:
        """Adds the file of rejected rows to what was made, if there are any."""
        if number:
            self.made.append((str(path), quantity(number, "rejected row")))

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Times a part of the job, in seconds."""
        start = time.monotonic()
        command = self.identity["command"]
        label = command if name == command else f"{command}: {name.replace('_', ' ')}"
        try:
            with self.console.working(label):
                yield
        finally:
            seconds = time.monotonic() - start
            self.timings[name] = round(self.timings.get(name, 0.0) + seconds, 3)


def run_job(
    command: str,
    config: Section,
    options: RunOptions,
    *,
    output: str,
    output_is_directory: bool,
    inputs: Inputs,
    body: Callable[[JobRecord], None],
    checked_inputs: CheckedInputs | None = None,
    ignored_keys: tuple[str, ...] = (),
    can_resume: bool = False,
    extendable_key: str | None = None,
    temporary: Path | None = None,
    check_held: Callable[[], None] | None = None,
    may_be_remote: bool = False,
) -> dict[str, Any]:
    """Runs `body` unless its output is finished, and writes the manifest.

    Args:
        command: the command's name.
        config: its resolved section; with the inputs it identifies the output.
        options: how to run.
        output: file or folder that `body` makes. A folder is made here, with `config.yaml` in it.
        output_is_directory: which of the two it is.
        inputs: files and folders the job reads, for fingerprints, by the config key that names
            them. That key's value does not count then: content does, not the name it goes by.
        body: does the work and fills the record.
        checked_inputs: which files of an input, a folder, are compared with its `SHA256SUMS` while
            they are read for its fingerprint, so that `body` need not read them for that again.
        ignored_keys: config keys that do not change this output's content, besides those that
            say so themselves.
        can_resume: whether `body` resumes from what an interrupted run left in the folder; if not,
            what it left is removed first.
        extendable_key: config key that `body`, which can resume, takes an output up by, finished or
            not, that is of a smaller value and otherwise the same.
        temporary: folder of what `body` keeps meanwhile, in an output that is a folder or beside
            one that is a file; removed once the output is finished.
        check_held: what `holding_output` of this output yields, where the caller is inside it.
        may_be_remote: whether `body` writes by paths of `path_of` alone, so that the output may lie
            on any storage that Beam writes.

    Returns:
        The manifest; its key `already_done` says whether nothing had to be done.

    Raises:
        UsageError: the output was made with another config or from other inputs, holds something
            else, is or holds an input, is being written by another process, or is not on a file
            system of this machine.
        InputError: a file of `checked_inputs` is not what was written.
    """
    place = OutputPlace(
        output=output,
        is_directory=output_is_directory,
        temporary=temporary,
        may_be_remote=may_be_remote,
    )
    check_place(place, [path for paths in inputs.values() for path in paths])
    holding = (
        nullcontext(check_held)
        if check_held is not None
        else holding_output(
            output, is_directory=output_is_directory, command=command, console=options.console
        )
    )
    with holding as check_held:
        return _run_alone(
            command,
            config,
            options,
            place=place,
            inputs=inputs,
            body=body,
            checked_inputs=checked_inputs or {},
            ignored_keys=(*keys_without_effect(config), *map(config_key, inputs), *ignored_keys),
            can_resume=can_resume,
            extendable_key=extendable_key,
            check_held=check_held,
        )


def _run_alone(
    command: str,
    config: Section,
    options: RunOptions,
    *,
    place: OutputPlace,
    inputs: Inputs,
    body: Callable[[JobRecord], None],
    checked_inputs: CheckedInputs,
    ignored_keys: tuple[str, ...],
    can_resume: bool,
    extendable_key: str | None,
    check_held: Callable[[], None],
) -> dict[str, Any]:
    console, output = options.console, place.output
    read = input_fingerprints(inputs, checked_inputs)
    identity: dict[str, Any] = {
        "command": command,
        "config": kept_keys(config.as_dict(), ignored_keys),
        "inputs": read,
    }
    if not options.overwrite and place.path.exists():
        finished = read_manifest(output)
        if finished is not None:
            before = kept_keys(
                with_defaults(type(config), finished.get("config", {})), ignored_keys
            )
            _check_same_config(output, finished, before, identity, extendable_key)
            remove_marks(place, config.section_name)
            if not is_extended(before, identity["config"], extendable_key):
                console.info(already_finished(output))
                return {**finished, "already_done": True}
            keep_seconds(place.seconds, finished["timings"]["total"])
            manifest_path(output).unlink()  # it does not vouch for what is written from here on
    if place.is_directory:
        writing = writing_folder(
            place,
            config,
            read,
            console,
            overwrite=options.overwrite,
            ignored_keys=ignored_keys,
            can_resume=can_resume,
            extendable_key=extendable_key,
        )
    else:
        writing = writing_file(
            place, config, overwrite=options.overwrite, ignored_keys=ignored_keys
        )
    record = JobRecord(console, identity, check_held)
    with writing:
        if options.log is not None and not options.is_part:
            options.log.keep_beside(output, command, is_directory=place.is_directory)
        kept = place.seconds if can_resume else None
        with (
            adding_up_seconds(kept, console, anew=options.overwrite) as elapsed,
            _listing_rejects(rejects_path(output)),
        ):
            body(record)
        record.timings.update(elapsed.timings())
        manifest = {**_manifest(record), "outputs": describe_files(output, record.sha256)}
        check_held()
        written = write_manifest(output, manifest)
        if place.temporary is not None:  # before the marker, which shows whose it is, is removed
            with suppress(OSError):
                remove(place.temporary)
    record.made.append((str(written), "what was made, from what and how"))
    if not options.is_part:
        console.close(
            Closing(
                command=command,
                made=record.made,
                counts=_shown_counts(record.counts),
                seconds=record.timings["total"],
                next_command=manifest["next"],
            )
        )
    return {**manifest, "already_done": False}


@contextmanager
def _listing_rejects(path: Path) -> Iterator[None]:
    """Writes the file of rejects also where they are why a job ends."""
    try:
        yield
    except RowsRejected as error:
        if not error.rejects:
            raise
        write_rejects(path, error.rejects)
        raise RowsRejected(f"{error} (all rejected rows: {path})", error.rejects) from error


def _shown_counts(counts: dict[str, Any]) -> list[tuple[str, str]]:
    """The counts of a manifest for people, zeros left out.

    Of a mapping by reason or split that is the sum; of one that has the rows, sequences and tokens
    of a file, the rows that were used.
    """
    shown = []
    for name, value in counts.items():
        number = value
        if _is_counts(value) and "rows_out" in value:
            name, number = f"{name} rows", value["rows_out"]
        elif _is_counts(value):
            number = sum(value.values())
        if isinstance(number, int) and not isinstance(number, bool) and number:
            shown.append((name.replace("_", " "), shown_number(number)))
    return shown


def _is_counts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(each, int) for each in value.values())


def _manifest(record: JobRecord) -> dict[str, Any]:
    """The manifest of a finished job, without its outputs."""
    peak = max(
        resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return {
        "manifest_version": MANIFEST_VERSION,
        **record.identity,
        "counts": record.counts,
        "metrics": record.metrics,
        **record.extra,
        "timings": record.timings,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "peak_memory_bytes": peak * 1024,
        "versions": package_versions(),
        "next": shlex.join(record.next_command) if record.next_command else None,
    }


def _check_same_config(
    output: str,
    finished: dict[str, Any],
    before: dict[str, Any],
    identity: dict[str, Any],
    extendable_key: str | None,
) -> None:
    check_made_by(output, finished, identity["command"])
    differences = []
    now = identity["config"]
    for key in different_keys(before, now, extendable_key):
        hint = ", and it cannot be shortened" if key == extendable_key else ""
        differences.append(f"{difference_of(key, before, now)}{hint}")
    read = finished.get("inputs", [])
    if not differences and not are_same_contents(read, identity["inputs"]):
        differences.append("the content of the inputs has changed")
    if differences:
        raise made_with_another_config(output, differences)
