"""A full or read-only disk, whatever library was writing: an OSError that names the file."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bert_tf.base.errors import BertPipelineError
from bert_tf.base.remote_path import as_path

_STORAGE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)


@contextmanager
def naming_file(path: str | Path, aside: str | Path | None = None) -> Iterator[None]:
    """What fails in the block for lack of storage is raised as an OSError about `path`.

    Python names the file on a full disk only when it opens it, not when it writes;
    safetensors, TensorFlow and HDF5 raise errors of their own, with the system's words in them.

    Args:
        path: what the block writes.
        aside: where it writes that to meanwhile; an OSError about it is one about `path`.

    Raises:
        OSError: there is no storage.
    """
    try:
        yield
    except BertPipelineError:
        raise
    except OSError as error:
        named = _about(error, as_path(path), aside)
        if named is None:
            raise
        raise named from error
    except Exception as error:  # of any library; all but those about storage pass
        code = _code_in(str(error))
        if code is None:
            raise
        raise OSError(code, os.strerror(code), str(path)) from error


def check_free_space(folder: str | Path, size: int) -> None:
    """Checks that a folder has free space, for libraries that crash where it ends, as HDF5 does.

    Args:
        folder: that exists.
        size: bytes.

    Raises:
        OSError: there is no free space.
    """
    with naming_file(folder), tempfile.TemporaryFile(dir=folder) as file:
        os.posix_fallocate(file.fileno(), 0, size)


def _about(error: OSError, path: Path, aside: str | Path | None) -> OSError | None:
    """The error with its file; None where it has that already, or is of another kind."""
    if isinstance(error.filename, str) and error.errno is not None:
        if aside is None or not Path(error.filename).is_relative_to(aside):
            return None
        inside = Path(error.filename).relative_to(aside)
        return OSError(error.errno, error.strerror, str(path / inside))
    code = error.errno if error.errno in _STORAGE else _code_in(str(error))
    return None if code is None else OSError(code, os.strerror(code), str(path))


def _code_in(message: str) -> int | None:
    return next((code for code in _STORAGE if os.strerror(code) in message), None)
