"""`bert-pipeline verify`: every byte of an artifact against its manifest."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

from bert_tf.base.wording import quantity, shown_size
from pipeline.report.artifact import require_manifest
from pipeline.report.files_check import file_differences


@dataclasses.dataclass(frozen=True, kw_only=True)
class Verified:
    """What was found at a path.

    Attributes:
        path: as it was given.
        is_whole: whether every file is what was written.
        files, bytes: as the manifest lists them.
        differences: a line for each file that is missing or not what was written.
    """

    path: str
    is_whole: bool
    files: int
    bytes: int
    differences: list[str]

    def lines(self) -> Iterator[str]:
        """The finding in words."""
        files = quantity(self.files, "file")
        if not self.files:
            yield f"{self.path}: FAILED, its manifest lists no files; make it again"
            return
        for difference in self.differences:
            yield f"{self.path}: {difference}"
        if self.differences:
            yield f"{self.path}: FAILED, {len(self.differences):,} of {files} not as written"
        else:
            yield f"{self.path}: OK, {files} as written ({shown_size(self.bytes)})"


def verify(path: str) -> Verified:
    """Compares all files of an artifact with its manifest.

    Args:
        path: file or folder with a manifest.

    Raises:
        UsageError: there is nothing at `path`, or nothing that this tool made.
        InputError: the output is not finished, or its manifest is damaged.
    """
    outputs = require_manifest(path).get("outputs", [])
    differences = list(map(str, file_differences(Path(path), outputs, lambda size: True)))
    return Verified(
        path=path,
        is_whole=bool(outputs) and not differences,
        files=len(outputs),
        bytes=sum(each["bytes"] for each in outputs),
        differences=differences,
    )
