"""Output of other libraries to stderr without known noise, in commands and in notebooks."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from bert_tf.base.noise_filter import is_noise

_VERBOSE_VARIABLE = "BERT_PIPELINE_VERBOSE"
_FILTER = Path(__file__).with_name("noise_filter.py")
_SECONDS_TO_DRAIN = 2.0
# Loggers that libraries use themselves. Filters of a logger do not see messages of its children.
_NOISY_LOGGERS = ("", "tensorflow")


def be_verbose() -> None:
    """Make libraries log everything, here and in processes started from now on."""
    os.environ[_VERBOSE_VARIABLE] = "1"


def is_verbose() -> bool:
    """Return whether all output of libraries is wanted."""
    return bool(os.environ.get(_VERBOSE_VARIABLE))


def ask_for_warnings_only() -> None:
    """Have C++ libraries loaded from now on log warnings and errors; keeps set variables."""
    # Level 1 hides information. Warnings matter: one tells that a GPU's libraries are missing.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")


@contextmanager
def filtered_stderr() -> Iterator[tuple[TextIO, int]]:
    """Send file descriptor 2 (stderr) through `noise_filter.py` inside the block.

    TensorFlow's C++ code, Python's logging and worker processes all write there. The filter is a
    process of its own, so that the last words of an aborted process still come through.

    Yields:
        A stream to the former stderr, for our own lines; and the descriptor of a pipe that takes
        messages for the log of a job.
    """
    stderr = sys.__stderr__
    if stderr is not None:
        stderr.flush()
    encoding = getattr(stderr, "encoding", "utf-8")
    errors = getattr(stderr, "errors", "backslashreplace")
    with os.fdopen(os.dup(2), "w", buffering=1, encoding=encoding, errors=errors) as own:
        process, log_descriptor = _start_filter()
        try:
            yield own, log_descriptor
        finally:
            if stderr is not None:
                stderr.flush()
            os.close(log_descriptor)
            os.dup2(own.fileno(), 2)
            # A worker process that has not ended yet holds the pipe open longer; no reason to wait.
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_SECONDS_TO_DRAIN)


def _start_filter() -> tuple[subprocess.Popen, int]:
    """Start the filter and make its pipe our stderr; also return the pipe for the log."""
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


def is_in_ipython() -> bool:
    """Return whether IPython runs this code, in a notebook or a terminal."""
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return get_ipython is not None and get_ipython() is not None


@contextmanager
def quiet_in_ipython() -> Iterator[TextIO]:
    """Keep noise of libraries out of a notebook, or do nothing outside IPython.

    A kernel shows all output to descriptor 2, but replaces `sys.stderr`, to which Python's logging
    writes. TensorFlow even logs to `sys.stdout` there, down to information. So descriptor 2 and the
    loggers are filtered. Blocks may be nested.

    Yields:
        The stream for our own lines.
    """
    if not is_in_ipython() or is_verbose():
        yield sys.stderr
        return
    ask_for_warnings_only()
    loggers = [logging.getLogger(name) for name in _NOISY_LOGGERS]
    with filtered_stderr() as (own, _):
        for logger in loggers:
            logger.addFilter(_is_worth_showing)
        try:
            yield own if sys.stderr is sys.__stderr__ else sys.stderr
        finally:
            for logger in loggers:
                logger.removeFilter(_is_worth_showing)


def _is_worth_showing(record: logging.LogRecord) -> bool:
    """Judge a record like `noise_filter.py`, by the line that a handler would print for it."""
    line = f"{record.levelname}:{record.name}:{record.getMessage()}"
    return not is_noise(line.encode(errors="replace"))
