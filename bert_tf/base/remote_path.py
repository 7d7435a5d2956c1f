"""Paths of files that are not on a file system of this machine."""

from __future__ import annotations

from pathlib import Path, PosixPath
from typing import NoReturn, Self


class RemotePath(PosixPath):
    """`scheme://bucket/folder/file`; subclasses know how such files are read and written.

    Code that uses nothing but a path's own methods works on files here and there, as with `epath`
    and `cloudpathlib`. `os`, `open` and libraries that take names of files refuse it with a
    TypeError, so that nothing is written to a folder named `scheme:` by mistake.
    """

    def __str__(self) -> str:
        scheme, mark, rest = super().__str__().partition(":/")
        return f"{scheme}://{rest}" if mark else scheme

    def __fspath__(self) -> NoReturn:
        raise TypeError(f"{self}: is not on a file system of this machine")

    def absolute(self) -> Self:
        """The path itself: there is no working folder."""
        return self

    def resolve(self, strict: bool = False) -> Self:
        """The path itself: there are no links."""
        return self

    def is_symlink(self) -> bool:
        """False: there are no links."""
        return False

    def read_range(self, offset: int, length: int) -> bytes:
        """Bytes of the file; fewer at its end.

        Raises:
            FileNotFoundError: there is no such file.
        """
        raise NotImplementedError

    def remove_tree(self) -> None:
        """Removes the folder with all in it, or the file, if there is one."""
        raise NotImplementedError


def as_path(path: str | Path) -> Path:
    """A `Path` of a name; one that is a path already, of whatever storage, as it is."""
    return path if isinstance(path, Path) else Path(path)
