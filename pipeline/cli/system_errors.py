"""What the operating system refuses, in a line that says in which file and what to do."""

from __future__ import annotations

import errno

_CURES = {
    errno.ENOSPC: "no space left on device; free some space, then run the same command again",
    errno.EDQUOT: "the disk quota is used up; free some space, then run the same command again",
    errno.EROFS: "the file system is read-only; name a place that can be written to",
    errno.EFBIG: "the file is larger than its file system or `ulimit -f` allows; name another "
    "place, or raise the limit",
    errno.EACCES: "permission denied; change its owner or mode, or name another place",
    errno.EMFILE: "too many open files; raise the limit with `ulimit -n`",
}


def explain_system_error(error: OSError) -> str:
    """File, reason and, where it is known, the cure."""
    reason = _CURES.get(error.errno or 0) or error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename else reason
