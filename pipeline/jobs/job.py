"""The frame of every job: is it done already, may it start, what did it make, what comes next."""

from __future__ import annotations

import dataclasses
import resource
import shlex
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bert_tf.config.console import Console
from bert_tf.config.errors import UsageError
from bert_tf.config.section import Section
from pipeline.artifacts import (
    MANIFEST_VERSION,
    fingerprint,
    package_versions,
    read_manifest,
    write_manifest,
)
from pipeline.jobs.outputs import marker_path, refuse_bad_place, writing_file, writing_folder
from pipeline.jobs.rejected_rows import RejectLimit


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a command runs, as opposed to what it makes: none of this is part of the config."""

    overwrite: bool = False
    resume: bool = False
    max_rejects: RejectLimit | None = None
    console: Console = dataclasses.field(default_factory=Console)


class JobRecord:
    """What a running job reports; it becomes the manifest.

    Attributes:
        counts: whole numbers by name (`rows_in`, `documents`, …; `rejected` may be a mapping from
            reason to number).
        metrics: results by name.
        extra: further manifest keys (schema, vocabulary hash, …).
        made: paths worth telling the user, with a word on each.
        next_command: the command to run next.
        identity: the command, the config keys and the fingerprints of inputs that decide what is
            made, as they stand in the manifest.
    """

    def __init__(self, console: Console, identity: dict[str, Any]):
        self.console = console
        self.identity = identity
        self.counts: dict[str, Any] = {}
        self.metrics: dict[str, Any] = {}
        self.extra: dict[str, Any] = {}
        self.made: list[tuple[str, str]] = []
        self.next_command: list[str] | None = None
        self.timings: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Times a part of the job, in seconds."""
        start = time.monotonic()
        try:
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
    inputs: list[str],
    body: Callable[[JobRecord], None],
    ignored_keys: tuple[str, ...] = (),
    can_resume: bool = False,
    temporary: Path | None = None,
) -> dict[str, Any]:
    """Runs `body` unless its output is finished, and writes the manifest.

    Args:
        command: the command's name.
        config: its resolved section; with the inputs it identifies the output.
        options: how to run.
        output: file or folder that `body` makes. A folder is made here, with `config.yaml` in it.
        output_is_directory: which of the two it is.
        inputs: files and folders the job reads, for fingerprints.
        body: does the work and fills the record.
        ignored_keys: config keys that do not change the output's content.
        can_resume: whether `body` goes on from what an interrupted run left in the folder; if not,
            what it left is removed first.
        temporary: folder of what `body` keeps for a run that goes on; removed once the output is
            finished.

    Returns:
        The manifest; its key `already_done` says whether nothing had to be done.

    Raises:
        UsageError: the output was made with another config or from other inputs, holds something
            else, is or holds an input, or is not on a file system of this machine.
    """
    console = options.console
    refuse_bad_place(output, inputs)
    identity = {
        "command": command,
        "config": {k: v for k, v in config.as_dict().items() if k not in ignored_keys},
        "inputs": [fingerprint(path) for path in inputs],
    }
    if Path(output).exists() and not options.overwrite:
        finished = read_manifest(output)
        if finished is not None:
            _refuse_other_config(output, finished, identity)
            _remove_leftovers(output, output_is_directory, temporary)
            console.say(f"{output} is finished already and its config is the same; nothing to do")
            return {**finished, "already_done": True}
    if output_is_directory:
        writing = writing_folder(
            output,
            config,
            console,
            overwrite=options.overwrite,
            ignored_keys=ignored_keys,
            can_resume=can_resume,
        )
    else:
        writing = writing_file(
            output, config, overwrite=options.overwrite, ignored_keys=ignored_keys
        )
    record = JobRecord(console, identity)
    with writing:
        start = time.monotonic()
        body(record)
        record.timings["total"] = round(time.monotonic() - start, 3)
        manifest = _manifest(record)
        written = write_manifest(output, manifest)
    record.made.append((str(written), "what was made, from what and how"))
    if temporary is not None:
        shutil.rmtree(temporary, ignore_errors=True)
    for path, meaning in record.made:
        console.say(f"  {path}  {meaning}")
    if manifest["next"]:
        console.say(f"next: {manifest['next']}")
    return {**manifest, "already_done": False}


def _manifest(record: JobRecord) -> dict[str, Any]:
    """What a finished job tells of itself."""
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
        "peak_memory_bytes": peak * 1024,
        "versions": package_versions(),
        "next": shlex.join(record.next_command) if record.next_command else None,
    }


def _refuse_other_config(output: str, finished: dict[str, Any], identity: dict[str, Any]) -> None:
    differences = []
    if finished.get("command") != identity["command"]:
        differences.append(f"command: {finished.get('command')} then, {identity['command']} now")
    before, now = finished.get("config", {}), identity["config"]
    for key in now:
        if before.get(key) != now[key] and key != "output":
            differences.append(f"{key}: {before.get(key)!r} then, {now[key]!r} now")

    def content(inputs: list[dict[str, Any]]) -> list[str]:
        return sorted(item["sha256"] for item in inputs)

    if not differences and content(finished.get("inputs", [])) != content(identity["inputs"]):
        differences.append("the content of the inputs has changed")
    if differences:
        raise UsageError(
            f"{output}: made with another config ({'; '.join(differences)}); "
            "choose another --output or replace it with --overwrite"
        )


def _remove_leftovers(output: str, is_directory: bool, temporary: Path | None) -> None:
    """What a run that was killed behind its manifest had no time to remove."""
    if not is_directory:
        marker_path(output, is_directory=False).unlink(missing_ok=True)
    if temporary is not None:
        shutil.rmtree(temporary, ignore_errors=True)
