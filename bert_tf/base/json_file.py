"""Reads JSON files of others whole, in bounded memory, with errors of one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.lfs_pointer import check_lfs_pointer

LARGEST_JSON_BYTES = 64 << 20  # the tokenizer of a vocabulary of 250,000 entries takes 9 MB


def read_json_object(path: str | Path) -> dict[str, Any]:
    """The object that a JSON file holds.

    Raises:
        UsageError: the file cannot be read.
        InputError: it is larger than LARGEST_JSON_BYTES, a Git LFS pointer, or no JSON object.
    """
    document = read_json(path)
    if not isinstance(document, dict):
        raise InputError(f"{path}: damaged; expected a JSON object")
    return document


def read_json(path: str | Path) -> Any:
    """The value that a JSON file holds.

    Raises:
        UsageError: the file cannot be read.
        InputError: it is larger than LARGEST_JSON_BYTES, a Git LFS pointer, or no JSON.
    """
    try:
        with Path(path).open("rb") as stream:
            content = stream.read(LARGEST_JSON_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
    check_lfs_pointer(path, content)
    if len(content) > LARGEST_JSON_BYTES:
        raise InputError(
            f"{path}: is larger than {LARGEST_JSON_BYTES >> 20} MiB; expected JSON of settings"
        )
    try:
        return json.loads(content.decode("utf-8"))
    except ValueError as error:
        raise InputError(f"{path}: damaged ({error}); expected JSON") from None
    except RecursionError:
        raise InputError(f"{path}: is nested too deeply; expected JSON of settings") from None
