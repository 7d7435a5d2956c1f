"""Keeps what other libraries write to stderr apart from our own lines, to drop the noise in it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from pipeline.beam.verbosity import be_verbose
from pipeline.outputs.job_log import JobLog

VERBOSE_HELP = "also show all output of TensorFlow, Beam and other libraries"
QUIET_HELP = "show warnings and errors alone"
_FILTER = Path(__file__).with_name("noise_filter.py")
_SECONDS_TO_DRAIN = 2.0


@contextmanager
def filtered_third_party_output(*, verbose: bool) -> Iterator[TextIO]:
    """As `logged_third_party_output`, without a log."""
    with logged_third_party_output(verbose=verbose) as (own, _):
        yield own


@contextmanager
def logged_third_party_output(*, verbose: bool) -> Iterator[tuple[TextIO, JobLog | None]]:
    """Leads file descriptor 2 through `noise_filter.py` while it is open.

    TensorFlow's C++ code, Python's logging and worker processes all write there. The filter is a
    process of its own, so that the last words of one that is killed or aborts still come through.
    Where this process has redirected `sys.stderr`, nothing is changed.

    Args:
        verbose: show everything, and let the libraries say more.

    Yields:
        The stream for our own lines: straight to where stderr leads, a terminal if that is one.
        The log that gets all that is led through the filter; None where nothing is.
    """
    if verbose:
        be_verbose()
    else:
        # The lowest level that shows warnings: of a graphics card whose libraries are missing.
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
        os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    stderr = sys.__stderr__
    if verbose or stderr is None or sys.stderr is not stderr:
        yield sys.stderr, None
        return
    stderr.flush()
    with os.fdopen(
        os.dup(2), "w", buffering=1, encoding=stderr.encoding, errors=stderr.errors
    ) as own:
        process, log_descriptor = _start_filter()
        try:
            yield own, JobLog(log_descriptor)
        finally:
            stderr.flush()
            os.close(log_descriptor)
            os.dup2(own.fileno(), 2)
            # A worker process that has not ended yet holds the pipe open longer; no reason to wait.
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_SECONDS_TO_DRAIN)


def _start_filter() -> tuple[subprocess.Popen, int]:
    """Starts the process and puts the pipe to it in the place of stderr; returns the pipe for the
    log, too."""
    reader, writer = os.pipe()
    log_reader, log_writer = os.pipe()
    try:
        # Its own session: Ctrl-C in the terminal is not meant for it.
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_FILTER), str(log_reader)],
            pass_fds=[log_reader],
            stdin=reader,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.dup2(writer, 2)
    finally:
        os.close(reader)
        os.close(writer)
        os.close(log_reader)
    return process, log_writer
