"""Storage schemes, faults and files that the tests of remote outputs share."""

from pathlib import Path

from memory_storage import FAULTS, FILES

from pipeline.beam import stored_path

SCHEMES = ("memory", "folders")
# An operation in the middle of a small job; `test_job_remote.py` tries all of a smaller one.
FAULTY = [("write", 12), ("copy", 6)]


def local_files(folder: Path) -> dict[str, bytes]:
    """Bytes of the files in a folder by name."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def stored_files(folder: str) -> dict[str, bytes]:
    """Bytes of all files in a folder of `memory_storage` by name."""
    prefix = f"{folder}/"
    return {
        path.removeprefix(prefix): data for path, data in FILES.items() if path.startswith(prefix)
    }


def forget_process() -> None:
    """Act like another process: it remembers no folders, and nothing fails."""
    stored_path._MADE.clear()
    FAULTS.reset()
