"""HTML files, a document each, and the extraction of text from web pages in processes with limits.

Parsers may take any time and memory for a hostile page. A process serves many pages; a page that
takes too much memory is tried again in a new process, so that the outcome depends only on the page.
"""

from __future__ import annotations

import atexit
import dataclasses
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from multiprocessing import Pipe
from typing import ClassVar, Self

from bert_tf.base.errors import InputError
from bert_tf.config.sections.data import CorpusSection, check_web_packages
from bert_tf.data.tables.rejects import Reject
from pipeline.corpus.raw_block import RawBlock
from pipeline.corpus.readers import html_process
from pipeline.corpus.readers.splits import Chunk, ChunkReader, collect

TOO_COSTLY = "page takes too much time or memory"
BAD_ENCODING = "page is not in its encoding"
BROKEN_PAGE = "page cannot be parsed"
_REASONS = {html_process.BAD_ENCODING: BAD_ENCODING, html_process.BROKEN: BROKEN_PAGE}
# Limits of the process, and of each page.
_MEMORY_MEGABYTES = 1024
_CPU_SECONDS = 10

Page = tuple[bytes, str]
"""The bytes of a page, and the encoding that HTTP names or an empty string."""


@dataclasses.dataclass(frozen=True)
class Extracted:
    """The text of a page, or the reason and details of a reject."""

    text: bytes = b""
    reason: str = ""
    detail: str = ""


@dataclasses.dataclass(frozen=True)
class HtmlReader(ChunkReader):
    """Reads a page per file: its main text, see `extract_pages`.

    Attributes:
        extractor: see `CorpusSection.html_extractor`.
    """

    extractor: str
    is_text: ClassVar[bool] = False

    @classmethod
    def for_file(cls, path: str, config: CorpusSection) -> Self:
        """Return the reader; raise UsageError if a package is missing."""
        del path
        check_web_packages(config.html_extractor)
        return cls(config.html_extractor)

    def find_last_border(self, data: bytes) -> int:
        del data
        return 0

    def read(self, path: str, chunk: Chunk) -> RawBlock:
        charset = "utf-8" if chunk.offset else ""  # after a byte-order mark
        (page,) = extract_pages(self.extractor, [(chunk.data, charset)])
        reject = Reject(path, 1, page.reason, page.detail)
        return collect(path, chunk, [reject if page.reason else (1, page.text)])


def extract_pages(extractor: str, pages: Sequence[Page]) -> list[Extracted]:
    """Extract the text of pages in a process that is kept for later calls."""
    idle = _idle.setdefault((os.getpid(), extractor), [])  # a forked process has its own
    try:
        process = idle.pop()
    except IndexError:
        process = _Extractor(extractor)
    extracted = process.extract(pages)
    idle.append(process)
    return extracted


_idle: dict[tuple[int, str], list[_Extractor]] = {}


class _Extractor:
    """A process that runs `html_process`, started again after a page that ended it."""

    def __init__(self, name: str):
        self._name = name
        self._process: subprocess.Popen | None = None

    def extract(self, pages: Sequence[Page]) -> list[Extracted]:
        extracted: list[Extracted] = []
        while len(extracted) < len(pages):
            is_new = self._process is None
            process = self._process or self._start()
            batch = pages[len(extracted) :]
            if is_new:
                batch = batch[:1]
            try:
                self._connection.send(batch)
                for _ in batch:
                    answer = self._connection.recv_bytes()
                    kind = answer[:1]
                    text = answer[1:]
                    if kind == html_process.BROKEN and not is_new:
                        process.kill()
                        raise EOFError
                    reason = _REASONS.get(kind)
                    if reason:
                        extracted.append(Extracted(b"", reason, text.decode()))
                    else:
                        extracted.append(Extracted(text))
            except (EOFError, OSError):
                # Earlier pages may have left little memory, so the page is tried again in a new
                # process.
                status = self.close()
                if is_new or status == -signal.SIGPROF:
                    extracted.append(_fault(status))
        return extracted

    def _start(self) -> subprocess.Popen:
        self._connection, other = Pipe()
        limits = [str(_MEMORY_MEGABYTES << 20), str(_CPU_SECONDS)]
        command = [sys.executable, "-P", html_process.__file__, self._name, *limits]
        with other:
            process = self._process = subprocess.Popen(
                [*command, str(other.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[other.fileno()],
                env={**os.environ, "PYTHONHASHSEED": "0"},
                start_new_session=True,  # Ctrl-C in the terminal is not meant for it
            )
        try:
            self._connection.recv_bytes()
        except EOFError:
            raise InputError(
                "the process that extracts text from web pages does not start "
                f"({shlex.join(command)}: exit status {self.close()})"
            ) from None
        return process

    def close(self) -> int:
        """Wait for the end of the process, which has no more pages; return its exit status."""
        process = self._process
        self._process = None
        if process is None:
            return 0
        self._connection.close()
        return process.wait()


@atexit.register
def _end_processes() -> None:
    for (owner, _), extractors in _idle.items():
        if owner == os.getpid():
            for extractor in extractors:
                extractor.close()


def _fault(status: int) -> Extracted:
    """Return the reject of a page that ends a new process; raise InputError if it was killed."""
    if status == -signal.SIGPROF:
        return Extracted(b"", TOO_COSTLY, f"more than {_CPU_SECONDS} s of CPU time")
    if status in (html_process.OUT_OF_MEMORY, -signal.SIGABRT):
        return Extracted(b"", TOO_COSTLY, f"more than {_MEMORY_MEGABYTES:,} MB of memory")
    if status in (-signal.SIGKILL, -signal.SIGTERM):
        raise InputError(
            "the process that extracts text from web pages was killed, perhaps as memory ran out; "
            "run the command again, with fewer workers"
        )
    return Extracted(b"", BROKEN_PAGE, f"exit status {status}")
