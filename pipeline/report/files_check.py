"""Whether the files of an artifact still match its manifest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bert_tf.base.checksums import file_sha256
from bert_tf.base.wording import quantity

# Read in about a second, so that a look at terabytes of records stays a look.
LARGEST_BYTES_HASHED = 256_000_000
_NAMES_SHOWN = 5


def file_differences(
    path: Path, outputs: list[dict[str, Any]], is_hashed: Callable[[int], bool]
) -> Iterator[str]:
    """Yields each file that differs from the manifest's `outputs`, and how, the smallest first.

    `is_hashed` decides by size whether to hash a file; `path` may have been renamed.
    """
    first = outputs[0]["path"]
    for each in sorted(outputs, key=lambda each: (each["bytes"], each["path"])):
        name = each["path"]
        file = (
            path / name if path.is_dir() else path.with_name(path.name + name.removeprefix(first))
        )
        if not file.is_file():
            yield f"{name} (missing)"
            continue
        size = file.stat().st_size
        if size != each["bytes"]:
            yield f"{name} ({size:,} bytes instead of {each['bytes']:,})"
        elif is_hashed(size) and file_sha256(file) != each["sha256"]:
            yield f"{name} (another SHA-256)"


def files_line(path: Path, outputs: list[dict[str, Any]]) -> str:
    """Compares all sizes, and contents up to `LARGEST_BYTES_HASHED` in all."""
    hashed, budget = 0, LARGEST_BYTES_HASHED

    def is_within_budget(size: int) -> bool:
        nonlocal hashed, budget
        budget -= size
        hashed += budget >= 0
        return budget >= 0

    differences = list(file_differences(path, outputs, is_within_budget))
    if differences:
        shown = ", ".join(differences[:_NAMES_SHOWN])
        more = len(differences) - _NAMES_SHOWN
        return (
            f"warning: {len(differences)} of {quantity(len(outputs), 'file')} changed or missing: "
            f"{shown}{f' and {more:,} more' if more > 0 else ''}"
        )
    how = "by SHA-256" if hashed == len(outputs) else f"by size, {hashed:,} also by SHA-256"
    return f"outputs: {quantity(len(outputs), 'file')} unchanged (compared {how})"
