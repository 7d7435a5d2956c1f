"""The frame of every job: skips complete outputs, checks the output, writes the manifest."""

from __future__ import annotations

import dataclasses
import resource
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bert_tf.base.console import Closing, Console
from bert_tf.base.errors import InputError, RowsRejected
from bert_tf.base.files import remove
from bert_tf.base.wording import quantity, shown_number
from bert_tf.config.resolve import read_yaml_sections
from bert_tf.config.section import Section
from bert_tf.data.tables.rejects import write_rejects
from bert_tf.training.memory import releasing_graphs
from pipeline.outputs.elapsed import adding_up_seconds, keep_seconds
from pipeline.outputs.filling import filling_file, filling_folder, remove_marks
from pipeline.outputs.inputs import JobInputs, are_same_contents
from pipeline.outputs.job_folder import JobFolder
from pipeline.outputs.job_spec import JobSpec, RunOptions, check_made_by, check_no_differences
from pipeline.outputs.manifest import (
    MANIFEST_VERSION,
    already_finished,
    describe_files,
    manifest_path,
    package_versions,
    write_manifest,
)
from pipeline.outputs.place import check_place


@dataclasses.dataclass
class JobRecord:
    """Record of a running job, which becomes the manifest.

    Attributes:
        identity: command, config keys and input fingerprints that decide the output.
        check_held: raises an error if another process has taken the output over.
        folder: the output.
        inputs: as they were when the job began.
        counts: by name (`rows_in`, `documents`, …); `rejected` may map reasons to numbers.
        sha256: of files hashed while they were written, by path in the output folder.
        extra: further manifest keys (schema, vocabulary hash, …).
        made: paths to show to the user, with a description of each.
        timings: seconds by stage.
        config_file: given by `--config`; None without one.
    """

    console: Console
    identity: dict[str, Any]
    check_held: Callable[[], None]
    folder: JobFolder
    inputs: JobInputs
    counts: dict[str, Any] = dataclasses.field(default_factory=dict)
    metrics: dict[str, Any] = dataclasses.field(default_factory=dict)
    sha256: dict[str, str] = dataclasses.field(default_factory=dict)
    extra: dict[str, Any] = dataclasses.field(default_factory=dict)
    made: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    next_command: list[str] | None = None
    timings: dict[str, float] = dataclasses.field(default_factory=dict)
    config_file: str | None = None

    def warn(self, warnings: list[str]) -> None:
        """Log warnings, and store them in the manifest."""
        self.console.warn(*warnings)
        self.extra.setdefault("notes", []).extend(warnings)

    def note_choices(self, spec: JobSpec, config: Section) -> None:
        """Store the values that the job chose, in the manifest and for a run that is resumed."""
        chosen = dataclasses.replace(spec, config=config)
        self.identity["config"] = chosen.kept_config
        self.folder.mark(config)

    def suggest(self, command: str, *positional: str, **flags: str) -> None:
        """Set the suggested next command.

        If the config file has a section of the command, it is named in place of the values.

        Args:
            command: its name.
            *positional: its arguments.
            **flags: values by flag; those of an input that this job has made win over the section.
        """
        section: dict[str, Any] = {}
        if self.config_file is not None and "config" not in flags:
            section = read_yaml_sections(self.config_file).get(command.replace("-", "_"), {})
        if section:
            made = {path for path, _ in self.made} | {self.folder.place.output}
            kept = {
                name: value
                for name, value in flags.items()
                if name not in section or (value in made and section[name] != value)
            }
            flags = {"config": str(self.config_file), **kept}
            positional = () if "task" in section else positional
        options = (text for name, value in flags.items() for text in (f"--{name}", value))
        self.next_command = ["bert-pipeline", command, *positional, *options]

    def list_rejects(self, path: Path, number: int) -> None:
        if number:
            self.made.append((str(path), quantity(number, "rejected row")))

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = time.monotonic()
        command = self.identity["command"]
        label = command if name == command else f"{command}: {name.replace('_', ' ')}"
        try:
            with self.console.working(label):
                yield
        finally:
            seconds = time.monotonic() - start
            self.timings[name] = round(self.timings.get(name, 0.0) + seconds, 3)

    def manifest(self) -> dict[str, Any]:
        peak = max(
            resource.getrusage(who).ru_maxrss
            for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        )
        return {
            "manifest_version": MANIFEST_VERSION,
            **self.identity,
            "counts": self.counts,
            "metrics": self.metrics,
            **self.extra,
            "timings": self.timings,
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "peak_memory_bytes": peak * 1024,
            "versions": package_versions(),
            "next": shlex.join(self.next_command) if self.next_command else None,
        }


def run_job(
    spec: JobSpec,
    options: RunOptions,
    body: Callable[[JobRecord], None],
    *,
    check_held: Callable[[], None] | None = None,
) -> dict[str, Any]:
    """Run `body`, which does the work and fills the record, unless the output is complete.

    Args:
        spec: the job.
        options: how the command runs.
        body: makes the content of the output; called at most once.
        check_held: the check of `holding_output`, if the caller already holds this output.

    Returns:
        The manifest; its key `already_done` says whether it was finished before.

    Raises:
        UsageError: the output was made with another config or from other inputs, holds something
            else, is or holds an input, is being written by another process, or is not on a file
            system of this machine.
        InputError: a file of `checked_inputs` is damaged.
    """
    folder = spec.open_folder()
    check_place(folder.place, [path for paths in spec.inputs.values() for path in paths])
    holding = spec.holding(options.console) if check_held is None else nullcontext(check_held)
    with releasing_graphs(), holding as check_held:
        inputs = JobInputs(spec.inputs, spec.checked_inputs)
        finished = None if options.overwrite else _finished(spec, folder, inputs)
        if finished is not None and not spec.is_extended(finished.get("config", {})):
            options.console.info(already_finished(spec.output))
            return {**finished, "already_done": True}
        if finished is not None:
            keep_seconds(folder.place.seconds, finished["timings"]["total"])
            manifest_path(folder.path).unlink()  # the old manifest is void once we write
        options.console.warn(*inputs.changed_since_made())
        identity: dict[str, Any] = {
            "command": spec.command,
            "config": spec.kept_config,
            "inputs": inputs.fingerprints,
            **spec.choices,
        }
        record = JobRecord(
            options.console, identity, check_held, folder, inputs, config_file=options.config_file
        )
        return _make(spec, options, body, record)


def _finished(spec: JobSpec, folder: JobFolder, inputs: JobInputs) -> dict[str, Any] | None:
    """Return the manifest of a finished output; None if it is not finished.

    Raises:
        UsageError: the output is not this job's.
    """
    finished = folder.manifest if folder.path.exists() else None
    if finished is None:
        return None
    check_made_by(spec.output, finished, spec.command)
    saved = finished.get("config", {})
    check_no_differences(spec.output, spec.differences(saved, spec.different_keys(saved)))
    if not are_same_contents(finished.get("inputs", []), inputs.fingerprints):
        check_no_differences(spec.output, ["the content of the inputs has changed"])
    remove_marks(folder)
    return finished


def _make(
    spec: JobSpec, options: RunOptions, body: Callable[[JobRecord], None], record: JobRecord
) -> dict[str, Any]:
    """Fill the output with `body`, and finish it."""
    place = record.folder.place
    console = options.console
    filling: AbstractContextManager[None]
    if place.is_directory:
        filling = filling_folder(spec, record.inputs.fingerprints, options)
    else:
        filling = filling_file(spec, options)
    with filling:
        if options.log is not None and not options.is_part:
            options.log.keep_beside(place.log, spec.command)
        kept = place.seconds if spec.can_resume else None
        with (
            adding_up_seconds(kept, console, anew=options.overwrite) as elapsed,
            _listing_rejects(place.rejects),
        ):
            body(record)
        _check_inputs(spec, record)
        record.timings.update(elapsed.timings())
        manifest = {**record.manifest(), "outputs": describe_files(place.path, record.sha256)}
        record.check_held()
        written = write_manifest(place.path, manifest)
        if place.temporary is not None:  # before the marker, which shows whose it is, is removed
            with suppress(OSError):
                remove(place.temporary)
    record.made.append((str(written), "inputs, config, counts and checksums"))
    if not options.is_part:
        console.close(
            Closing(
                command=spec.command,
                made=record.made,
                counts=_shown_counts(record.counts),
                seconds=record.timings["total"],
                next_command=manifest["next"],
            )
        )
    return {**manifest, "already_done": False}


def _check_inputs(spec: JobSpec, record: JobRecord) -> None:
    """Raise InputError for changed inputs, of which a file without manifest does not stay."""
    changed = [
        f"{path}: has changed or is gone since the job began" for path in record.inputs.changed()
    ]
    if spec.reads_inputs_first:
        record.warn(changed)
    elif changed:
        if not record.folder.place.is_directory:
            remove(record.folder.path)
        raise InputError(
            f"{changed[0]}, so the output may mix old and new content; run the same command again "
            "with the old content, or with --overwrite"
        )


@contextmanager
def _listing_rejects(path: Path) -> Iterator[None]:
    """Write the rejects file even if the rejects end the job."""
    try:
        yield
    except RowsRejected as error:
        if not error.rejects:
            raise
        write_rejects(path, error.rejects)
        raise RowsRejected(f"{error} (all rejected rows: {path})", error.rejects) from error


def _shown_counts(counts: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the nonzero counts of a manifest with their names.

    A mapping of reasons shows its sum, counts of a file its used rows.
    """
    lines = []
    for name, value in counts.items():
        number = value
        is_mapping = isinstance(value, dict) and all(isinstance(n, int) for n in value.values())
        if is_mapping and "rows_out" in value:
            name = f"{name} rows"
            number = value["rows_out"]
        elif is_mapping:
            number = sum(value.values())
        if isinstance(number, int) and not isinstance(number, bool) and number:
            lines.append((name.replace("_", " "), shown_number(number)))
    return lines
