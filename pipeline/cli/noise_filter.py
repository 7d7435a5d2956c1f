"""Copies stdin to stderr without known noise of libraries, and completely to the job's log.

Run as a script by an interpreter without packages; its argument is the descriptor of the pipe by
which the job writes to the log. Warnings and errors pass unless they are listed here.
"""

from __future__ import annotations

import os
import re
import select
import signal
import sys

_SECONDS_OF_A_LINE = 0.2
_LONGEST_LINE = 1 << 20
_LONGEST_LOG = 1 << 24
# As in pipeline/outputs/job_log.py, which this process does not import.
OPEN = b"\0"
_FIRST_LINE = re.compile(rb"\d{4}-\d\d-\d\d [\d:]+ UTC: bert-pipeline ")

_NOISE = re.compile(
    b"|".join(
        (
            # Information, as absl and TensorFlow's older loggers write it. TF_CPP_MIN_LOG_LEVEL
            # does not hold for what is written while the library is loaded.
            rb"^(?:I\d{4} [\d:.]+ +\d+|\d{4}-\d\d-\d\d [\d:.]+: I) \S+:\d+\] ",
            rb"All log messages before absl::InitializeLog",
            rb"^To enable the following instructions: .*rebuild TensorFlow",
            # oneDNN has no kernel of a type for this processor, so another one is taken.
            rb"oneDNN custom operations are on",
            rb"oneDNN supports DT_\w+ only on platforms with",
            # No graphics card: no driver (303), or none visible.
            rb"Could not find cuda drivers",
            rb"failed call to cuInit: .*(?:\(303\)|CUDA_ERROR_NO_DEVICE)",
            # Parts that several of TensorFlow's libraries bring.
            rb"Unable to register cu\w+ factory",
            rb"computation placer already registered",
            rb"TF-TRT Warning: Could not find TensorRT",
            # How tf.data says that a dataset ended.
            rb"Local rendezvous is aborting with status: OUT_OF_RANGE: End of sequence",
            rb"Allocation of \d+ exceeds \d+% of free system memory",
            # Several models in one process, of which each is traced once.
            rb"^WARNING:tensorflow:\d+ out of the last \d+ calls to .* tf\.function retracing",
            # Another worker is gone, which the error says.
            rb"BaseCollectiveExecutor::StartAbort UNAVAILABLE",
            rb"^Additional GRPC error information from remote target",
            rb"^:UNKNOWN:Error received from peer",
            # Using Google's clients says so anyway; a job server is waited for or named.
            rb"^WARNING:root:apitools not found",
            rb"^(?:WARNING:root:)?Waiting for grpc channel to be ready",
        )
    )
)


def is_noise(line: bytes) -> bool:
    return _NOISE.search(line) is not None


class Log:
    """The log of a job; keeps lines until its file is known.

    Always writes the job's own lines, and those of libraries up to a size. Leaves a file alone
    that does not begin like such a log.
    """

    def __init__(self) -> None:
        self._file = -1
        self._is_refused = False
        self._waiting: list[bytes] = []
        self._left = _LONGEST_LOG
        self._begun = b""

    def read(self, chunk: bytes) -> None:
        """Takes messages of `JobLog`, the last of which may be incomplete."""
        *messages, self._begun = (self._begun + chunk).split(b"\n")
        for message in messages:
            if message[:1] == OPEN:
                first_line, _, path = message[1:].partition(OPEN)
                self._open(path, first_line)
            else:
                self._add(message[1:] + b"\n")

    def write(self, lines: list[bytes]) -> None:
        data = b"".join(lines)
        if self._left <= 0 or not data:
            return
        self._left -= len(data)
        if self._left <= 0:
            data += b"(further output of libraries is left out: this log is too long)\n"
        self._add(data)

    def _add(self, data: bytes) -> None:
        if self._file >= 0:
            self._append(data)
        elif not self._is_refused:
            self._waiting.append(data)

    def _open(self, path: bytes, first_line: bytes) -> None:
        try:
            file, size = _open_log(path)
            if size and size >= self._left and _set_aside(path):
                os.close(file)
                file, size = _open_log(path)
        except OSError:  # a job needs no log to go on
            self._is_refused, self._left = True, 0
            self._waiting.clear()
            return
        self._file = file
        self._left -= size
        self._append(b"".join((first_line, b"\n", *self._waiting)))
        self._waiting.clear()

    def _append(self, data: bytes) -> None:
        if not _write(self._file, data):
            self._left = 0


def _open_log(path: bytes) -> tuple[int, int]:
    """Opens or creates a log; returns its descriptor and its size in bytes."""
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
    begin = os.read(file, 64)
    if begin and not _FIRST_LINE.match(begin):
        os.close(file)
        raise FileExistsError(path)
    return file, os.fstat(file).st_size


def _set_aside(path: bytes) -> bool:
    """Renames a log to `job.log.1`, unless that is a file of another kind."""
    older = path + b".1"
    try:
        if os.path.lexists(older):
            file, _ = _open_log(older)
            os.close(file)
        os.replace(path, older)  # noqa: PTH105
    except OSError:
        return False
    return True


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    log, begun, is_shown = Log(), b"", True
    messages = [int(descriptor) for descriptor in sys.argv[1:]]
    while True:
        # A prompt has no line end; noise is written in one go.
        ready = select.select([0, *messages], [], [], _SECONDS_OF_A_LINE if begun else None)[0]
        for descriptor in set(messages).intersection(ready):
            sent = os.read(descriptor, 1 << 16)
            log.read(sent)
            if not sent:
                messages.remove(descriptor)
        if begun and not ready:
            is_shown = is_shown and _write_kept([begun])
            begun = b""
        if 0 not in ready:
            continue
        chunk = os.read(0, 1 << 16)
        lines = (begun + chunk).splitlines(keepends=True)
        is_whole = not chunk or chunk.endswith((b"\n", b"\r")) or len(lines[-1]) > _LONGEST_LINE
        begun = b"" if is_whole else lines.pop()
        log.write(lines)
        is_shown = is_shown and _write_kept(lines)
        if not chunk:
            break
    while messages and (sent := os.read(messages[0], 1 << 16)):
        log.read(sent)


def _write_kept(lines: list[bytes]) -> bool:
    """Returns whether stderr is still read: `2>&1 | head` ends early."""
    return _write(2, b"".join(line for line in lines if not is_noise(line)))


def _write(descriptor: int, data: bytes) -> bool:
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()
