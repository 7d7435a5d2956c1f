"""Copies stdin to stderr without lines that libraries write on every machine of a kind.

Run as a script by an interpreter without packages. Warnings and errors pass unless they are listed
here, one by one.
"""

from __future__ import annotations

import os
import re
import select
import signal

_SECONDS_OF_A_LINE = 0.2
_LONGEST_LINE = 1 << 20

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
    """Whether a line says nothing about this run."""
    return _NOISE.search(line) is not None


def main() -> None:
    """Copies until the last process that writes has ended."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    begun = b""
    while True:
        # A prompt has no line end; noise is written in one go.
        if begun and not select.select([0], [], [], _SECONDS_OF_A_LINE)[0]:
            _write_kept([begun])
            begun = b""
        chunk = os.read(0, 1 << 16)
        lines = (begun + chunk).splitlines(keepends=True)
        is_whole = not chunk or chunk.endswith((b"\n", b"\r")) or len(lines[-1]) > _LONGEST_LINE
        begun = b"" if is_whole else lines.pop()
        _write_kept(lines)
        if not chunk:
            return


def _write_kept(lines: list[bytes]) -> None:
    data = b"".join(line for line in lines if not is_noise(line))
    while data:
        data = data[os.write(2, data) :]


if __name__ == "__main__":
    main()
