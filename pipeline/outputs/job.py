"""The frame of every job: skips complete outputs, checks the output, writes the manifest."""

from __future__ import annotations

import dataclasses
import functools
import resource
import shlex
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bert_tf.base.console import Closing, Console
from bert_tf.base.errors import InputError, RowsRejected
from bert_tf.base.files import RemotePath, remove, write_text_atomically
from bert_tf.base.json_files import read_sealed, sealed
from bert_tf.base.wording import quantity, shown_number
from bert_tf.config.resolve import read_yaml_sections
from bert_tf.config.section import Section, fields_of, former_defaults
from bert_tf.data.tables.rejects import write_rejects
from bert_tf.training.memory import releasing_graphs
from pipeline.outputs.choices import CHOSEN
from pipeline.outputs.filling import filling_file, filling_folder, remove_marks, write_marker
from pipeline.outputs.job_log import JobLog
from pipeline.outputs.lock import holding_output
from pipeline.outputs.manifest import (
    MANIFEST_VERSION,
    CheckedInputs,
    Inputs,
    already_finished,
    are_same_contents,
    changed_inputs,
    changed_since_made,
    check_made_by,
    check_no_differences,
    config_key,
    describe_files,
    input_fingerprints,
    input_states,
    kept_keys,
    manifest_path,
    package_versions,
    read_manifest,
    rejects_path,
    with_defaults,
    write_manifest,
)
from pipeline.outputs.place import OutputPlace, check_place
from pipeline.outputs.rejects import RejectLimit

# Between two writes of the elapsed time, of which a killed job loses the last. Each write to other
# storage is a request.
_SECONDS = 5.0
_REMOTE_SECONDS = 60.0


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
        """Return what notes say about keys that the job may choose; {} if its section has none."""
        return {CHOSEN: list(self.open_keys)} if former_defaults(self.config) else {}

    def holding(self, console: Console) -> AbstractContextManager[Callable[[], None]]:
        return holding_output(self.place, self.command, console)

    def different_keys(self, config: Mapping[str, Any]) -> list[str]:
        """Return the keys in which the config differs from a saved one, other than an extension."""
        before, now = self.saved(config), self.kept_config
        extended = self.extendable_key if self.is_extended(config) else None
        return [key for key in now if before.get(key) != now[key] and key != extended]

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


@dataclasses.dataclass
class JobRecord:
    """Record of a running job, which becomes the manifest.

    Attributes:
        identity: command, config keys and input fingerprints that decide the output.
        check_held: raises an error if another process has taken the output over.
        changed_inputs: lists inputs that have changed since the job began.
        counts: by name (`rows_in`, `documents`, …); `rejected` may map reasons to numbers.
        sha256: of files hashed while they were written, by path in the output folder.
        extra: further manifest keys (schema, vocabulary hash, …).
        made: paths to show to the user, with a description of each.
        timings: seconds by stage.
        output: path of the output.
        config_file: given by `--config`; None without one.
    """

    console: Console
    identity: dict[str, Any]
    check_held: Callable[[], None]
    changed_inputs: Callable[[], list[str]] = list
    counts: dict[str, Any] = dataclasses.field(default_factory=dict)
    metrics: dict[str, Any] = dataclasses.field(default_factory=dict)
    sha256: dict[str, str] = dataclasses.field(default_factory=dict)
    extra: dict[str, Any] = dataclasses.field(default_factory=dict)
    made: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    next_command: list[str] | None = None
    timings: dict[str, float] = dataclasses.field(default_factory=dict)
    output: str = ""
    config_file: str | None = None

    def warn(self, warnings: list[str]) -> None:
        """Log warnings, and store them in the manifest."""
        self.console.warn(*warnings)
        self.extra.setdefault("notes", []).extend(warnings)

    def note_choices(self, spec: JobSpec, config: Section) -> None:
        """Store the values that the job chose, in the manifest and for a run that is resumed."""
        chosen = dataclasses.replace(spec, config=config)
        self.identity["config"] = chosen.kept_config
        write_marker(spec.place.marker, config)

    def suggest(self, command: str, *positional: str, **flags: str) -> None:
        """Set the suggested next command.

        A config file that has a section of the command is named instead of what that section says.

        Args:
            command: its name.
            *positional: its arguments.
            **flags: values by flag; those of an input that this job has made win over the section.
        """
        section: dict[str, Any] = {}
        if self.config_file is not None and "config" not in flags:
            section = read_yaml_sections(self.config_file).get(command.replace("-", "_"), {})
        if section:
            made = {path for path, _ in self.made} | {str(self.output)}
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
    place = spec.place
    check_place(place, [path for paths in spec.inputs.values() for path in paths])
    holding = spec.holding(options.console) if check_held is None else nullcontext(check_held)
    with releasing_graphs(), holding as check_held:
        states = input_states(spec.inputs)
        identity: dict[str, Any] = {
            "command": spec.command,
            "config": spec.kept_config,
            "inputs": input_fingerprints(spec.inputs, spec.checked_inputs),
            **spec.choices,
        }
        finished = None if options.overwrite else _finished(spec, identity)
        if finished is not None and not spec.is_extended(finished.get("config", {})):
            options.console.info(already_finished(spec.output))
            return {**finished, "already_done": True}
        if finished is not None:
            keep_seconds(place.seconds, finished["timings"]["total"])
            manifest_path(spec.output).unlink()  # the old manifest is void once we write
        record = JobRecord(
            options.console,
            identity,
            check_held,
            output=spec.output,
            config_file=options.config_file,
        )
        record.changed_inputs = functools.partial(
            changed_inputs, spec.inputs, states, identity["inputs"]
        )
        options.console.warn(*changed_since_made(identity["inputs"]))
        return _make(spec, options, body, record)


def _finished(spec: JobSpec, identity: dict[str, Any]) -> dict[str, Any] | None:
    """Return the manifest of a finished output; None if it is not finished.

    Raises:
        UsageError: the output is not this job's.
    """
    finished = read_manifest(spec.output) if spec.place.path.exists() else None
    if finished is None:
        return None
    check_made_by(spec.output, finished, spec.command)
    saved = finished.get("config", {})
    check_no_differences(spec.output, spec.differences(saved, spec.different_keys(saved)))
    if not are_same_contents(finished.get("inputs", []), identity["inputs"]):
        check_no_differences(spec.output, ["the content of the inputs has changed"])
    remove_marks(spec.place, spec.config.section_name)
    return finished


def _make(
    spec: JobSpec, options: RunOptions, body: Callable[[JobRecord], None], record: JobRecord
) -> dict[str, Any]:
    """Fill the output with `body`, and finish it."""
    place = spec.place
    console = options.console
    filling: AbstractContextManager[None]
    if place.is_directory:
        filling = filling_folder(spec, record.identity["inputs"], options)
    else:
        filling = filling_file(spec, options)
    with filling:
        if options.log is not None and not options.is_part:
            options.log.keep_beside(place.log, spec.command)
        kept = place.seconds if spec.can_resume else None
        with (
            adding_up_seconds(kept, console, anew=options.overwrite) as elapsed,
            _listing_rejects(rejects_path(place.output)),
        ):
            body(record)
        _check_inputs(spec, record)
        record.timings.update(elapsed.timings())
        manifest = {**record.manifest(), "outputs": describe_files(place.output, record.sha256)}
        record.check_held()
        written = write_manifest(place.output, manifest)
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
        f"{path}: has changed or is gone since the job began" for path in record.changed_inputs()
    ]
    if spec.reads_inputs_first:
        record.warn(changed)
    elif changed:
        if not spec.place.is_directory:
            remove(spec.place.path)
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
    shown = []
    for name, value in counts.items():
        number = value
        is_mapping = isinstance(value, dict) and all(isinstance(n, int) for n in value.values())
        if is_mapping and "rows_out" in value:
            name, number = f"{name} rows", value["rows_out"]
        elif is_mapping:
            number = sum(value.values())
        if isinstance(number, int) and not isinstance(number, bool) and number:
            shown.append((name.replace("_", " "), shown_number(number)))
    return shown


@dataclasses.dataclass
class Elapsed:
    """Seconds of a job.

    Attributes:
        earlier: of interrupted runs before this one, approximately.
        start: of this run, by the monotonic clock.
    """

    earlier: float
    start: float = dataclasses.field(default_factory=time.monotonic)

    def total(self) -> float:
        return self.earlier + time.monotonic() - self.start

    def timings(self) -> dict[str, float]:
        """Return `total` of all runs, and `last_part` if there are several."""
        total = self.total()
        if not self.earlier:
            return {"total": round(total, 3)}
        return {"last_part": round(total - self.earlier, 3), "total": round(total, 3)}


@contextmanager
def adding_up_seconds(path: Path | None, console: Console, *, anew: bool) -> Iterator[Elapsed]:
    """Time the block; if it fails or is killed, a file keeps its time for the resumed run.

    Args:
        path: the file; None if no run resumes another.
        anew: whether the time of earlier runs does not count.
    """
    if path is None:
        yield Elapsed(0.0)
        return
    elapsed = Elapsed(0.0 if anew else _read_seconds(path, console))
    interval = _REMOTE_SECONDS if isinstance(path, RemotePath) else _SECONDS
    ended = threading.Event()

    def keep() -> None:
        with suppress(OSError):  # a full disk stops the job where it writes its output
            keep_seconds(path, elapsed.total())

    def keep_on() -> None:
        while not ended.wait(interval):
            keep()

    thread = threading.Thread(target=keep_on, daemon=True)
    thread.start()
    try:
        yield elapsed
    except BaseException:
        keep()
        raise
    finally:
        ended.set()
        thread.join()
    path.unlink(missing_ok=True)


def keep_seconds(path: Path, seconds: float) -> None:
    """Store the seconds that the next `adding_up_seconds` of this file starts from."""
    write_text_atomically(path, sealed({"seconds": round(seconds, 6)}))


def _read_seconds(path: Path, console: Console) -> float:
    """Return the seconds of earlier runs; 0 if there are none, or if the file is damaged."""
    try:
        return float(read_sealed(path)["seconds"])
    except FileNotFoundError:
        return 0.0
    except (ValueError, KeyError, TypeError):
        console.warn(f"{path}: damaged; the time of earlier runs is missing from the total")
        return 0.0
