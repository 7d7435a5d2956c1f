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

import yaml

from bert_tf.config.console import Console
from bert_tf.config.errors import UsageError
from bert_tf.config.section import Section
from bert_tf.data.atomic import write_text_atomically
from pipeline.artifacts import (
    MANIFEST_VERSION,
    fingerprint,
    package_versions,
    read_manifest,
    write_manifest,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a command runs, as opposed to what it makes: none of this is part of the config."""

    overwrite: bool = False
    resume: bool = False
    max_rejects: int | None = None
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
        UsageError: the output was made with another config or from other inputs, a folder holds
            something else, or the output is not on a file system of this machine.
    """
    console = options.console
    if "://" in output:
        raise UsageError(
            f"{output}: outputs are written to this machine's file system; give a local path or "
            "the path under which that storage is mounted here, or copy the output afterwards"
        )
    identity = {
        "command": command,
        "config": {k: v for k, v in config.as_dict().items() if k not in ignored_keys},
        "inputs": [fingerprint(path) for path in inputs],
    }
    finished = read_manifest(output) if Path(output).exists() else None
    if finished is not None and not options.overwrite:
        _refuse_other_config(output, finished, identity)
        _remove_leftovers(output, output_is_directory, temporary)
        console.say(f"{output} is finished already and its config is the same; nothing to do")
        return {**finished, "already_done": True}
    if output_is_directory:
        _open_directory(output, command, config, options, ignored_keys, can_resume=can_resume)
    else:
        _open_file(output, config, options, ignored_keys, is_finished=finished is not None)
    record = JobRecord(console, identity)
    start = time.monotonic()
    try:
        body(record)
    except BaseException:
        _remove_leftovers(output, output_is_directory, None)
        raise
    record.timings["total"] = round(time.monotonic() - start, 3)
    manifest = _manifest(record)
    record.made.append((str(write_manifest(output, manifest)), "what was made, from what and how"))
    _remove_leftovers(output, output_is_directory, temporary)
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


def _open_directory(
    output: str,
    command: str,
    config: Section,
    options: RunOptions,
    ignored_keys: tuple[str, ...],
    *,
    can_resume: bool,
) -> None:
    folder = Path(output)
    marker = _marker(output, is_directory=True)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{output}: is a file; --output of {command} names a folder")
    content = [path for path in folder.iterdir() if path != marker] if folder.is_dir() else []
    if content:
        if not marker.is_file():
            raise UsageError(
                f"{output}: holds files that bert-pipeline did not make; choose an empty folder"
            )
        if not options.overwrite:
            _refuse_other_run(output, marker, config, ignored_keys)
        if options.overwrite or not can_resume:
            for path in content:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        else:
            options.console.say(f"{output}: unfinished run of the same config found; going on")
    folder.mkdir(parents=True, exist_ok=True)
    _write_marker(marker, config)


def _open_file(
    output: str,
    config: Section,
    options: RunOptions,
    ignored_keys: tuple[str, ...],
    *,
    is_finished: bool,
) -> None:
    """Marks the file as one that is being made, so that it is known if only its manifest lacks."""
    marker = _marker(output, is_directory=False)
    if Path(output).exists() and not is_finished and not options.overwrite:
        if not marker.is_file():
            raise UsageError(
                f"{output}: exists but was not made by this command; "
                "choose another --output or replace it with --overwrite"
            )
        _refuse_other_run(output, marker, config, ignored_keys)
    _write_marker(marker, config)


def _marker(output: str, *, is_directory: bool) -> Path:
    path = Path(output)
    return path / "config.yaml" if is_directory else path.with_name(f".{path.name}.config.yaml")


def _write_marker(marker: Path, config: Section) -> None:
    document = {config.section_name: config.as_dict()}
    write_text_atomically(marker, yaml.safe_dump(document, sort_keys=False, allow_unicode=True))


def _remove_leftovers(output: str, is_directory: bool, temporary: Path | None) -> None:
    if not is_directory:
        _marker(output, is_directory=False).unlink(missing_ok=True)
    if temporary is not None:
        shutil.rmtree(temporary, ignore_errors=True)


def _refuse_other_run(
    output: str, marker: Path, config: Section, ignored_keys: tuple[str, ...]
) -> None:
    document = yaml.safe_load(marker.read_text(encoding="utf-8"))
    before = document.get(config.section_name, {}) if isinstance(document, dict) else {}
    now = config.as_dict()
    if any(before.get(key) != now[key] for key in now if key not in ignored_keys):
        raise UsageError(
            f"{output}: holds an unfinished run of another config (see {marker}); "
            "choose another --output or replace it with --overwrite"
        )
