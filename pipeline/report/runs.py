"""Run directories as pages read them: finished, or as far as they are."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bert_tf.base.errors import UsageError
from bert_tf.config.section import plain_values
from bert_tf.config.sections import FinetuneConfig, TrainConfig
from bert_tf.training.metrics_log import read_metrics
from pipeline.outputs.manifest import check_files, read_manifest
from pipeline.outputs.place import marker_path, read_marker
from pipeline.report.artifact import section_of
from pipeline.report.document import REPORT

MOST_RUNS = 8
_COMMANDS = (TrainConfig.section_name, FinetuneConfig.section_name)
_BEGIN, _END = "</h1>\n", "</main></body></html>"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
    """A run under its name on the page; `manifest` is None until it is finished."""

    name: str
    path: Path
    command: str
    config: dict[str, Any]
    manifest: dict[str, Any] | None
    lines: Sequence[dict[str, Any]]

    @property
    def is_pretraining(self) -> bool:
        return self.command == TrainConfig.section_name

    def evaluation_html(self) -> str | None:
        """Returns the body of its evaluation page, if any; InputError if edited."""
        page = self.path / REPORT
        if self.manifest is None or not page.is_file():
            return None
        check_files(self.path, {REPORT})
        _, _, content = page.read_text(encoding="utf-8").partition(_BEGIN)
        return content.rpartition(_END)[0] or None


def read_runs(paths: Sequence[str]) -> list[Run]:
    """Reads runs in order.

    Raises UsageError for too many paths, one twice, or one without metrics; InputError if damaged.
    """
    if len(paths) > MOST_RUNS:
        raise UsageError(
            f"{len(paths)} runs: a page has colors for {MOST_RUNS}; give fewer at once"
        )
    folders = [Path(path).resolve() for path in paths]
    for path, folder in zip(paths, folders, strict=True):
        if folders.count(folder) > 1:
            raise UsageError(f"{path}: is given twice; name each run once")
    names = [folder.name for folder in folders]
    if len(set(names)) < len(names):
        common = Path(os.path.commonpath(folders))
        names = [
            folder.name if folder == common else folder.relative_to(common).as_posix()
            for folder in folders
        ]
    return [_read_run(path, name) for path, name in zip(paths, names, strict=True)]


def _read_run(path: str, name: str) -> Run:
    folder = Path(path)
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "no such folder"
        raise UsageError(f"{path}: {what}; give the output of train or finetune")
    manifest = read_manifest(folder)
    if manifest is not None:
        command, config = manifest.get("command", ""), manifest.get("config", {})
    else:
        marked = read_marker(marker_path(path, is_directory=True)) or {}
        command, config = next(iter(marked.items()), ("", {}))
        section = section_of(command, config)
        config = config if section is None else plain_values(section, config)
    if command not in _COMMANDS:
        raise UsageError(
            f"{path}: is not a run; give the output of train or finetune "
            "(bert-pipeline inspect --html describes other outputs)"
        )
    lines = read_metrics(folder / "metrics.jsonl")
    if not lines:
        raise UsageError(f"{path}: has no metrics yet; wait until the run has made some steps")
    return Run(
        name=name, path=folder, command=command, config=config, manifest=manifest, lines=lines
    )
