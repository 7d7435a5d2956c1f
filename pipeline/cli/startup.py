"""Preparations of a command: TensorFlow's memory, signals, and a filter for libraries' output."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import TextIO

from bert_tf.base.errors import handling_signals
from bert_tf.base.gpus import HIDDEN, nvidia_gpus
from bert_tf.base.library_output import ask_for_warnings_only, be_verbose, filtered_stderr
from bert_tf.training.memory import memory_and_swap
from pipeline.outputs.job_log import JobLog

_LIBRARIES = 2**30  # bytes that TensorFlow and this program take beside the pool
_CACHE_DIRECTORY = "--tf_xla_persistent_cache_directory"
# Versions of TensorFlow compare either the name of the device or its name in XLA.
_CACHE_DEVICES = "--tf_xla_persistent_cache_device_types=GPU,XLA_GPU_JIT"
# Otherwise XLA times thousands of Triton kernels: the first step of BERT base on an H100 took 150 s
# instead of 45.
_CUBLAS_ONLY = "--xla_gpu_enable_triton_gemm=false"


class Terminated(BaseException):
    """SIGTERM; like `KeyboardInterrupt` no `Exception`, so that no handler swallows it."""


def raising_on_signals() -> AbstractContextManager[None]:
    """Raise `Terminated` at the first SIGTERM inside the block, `KeyboardInterrupt` at Ctrl-C.

    A second SIGTERM ends the process at once. Does nothing outside the main thread.

    Returns:
        The block, as a context manager.
    """

    def handle(number: signal.Signals, restore: Callable[[], None]) -> None:
        restore()
        # Beam names its step in the argument, and replaces exceptions that have none.
        if number == signal.SIGTERM:
            raise Terminated("stopped")
        raise KeyboardInterrupt("stopped")

    return handling_signals(handle)


def keep_freed_memory() -> None:
    """Make TensorFlow keep the memory of one training step for the next, in a pool as on GPUs.

    By default glibc returns large blocks to the system, which has to clear new pages at every step:
    a tenth of the time of a small BERT's step on two cores. The pool may grow to nearly all memory,
    so that a step that does not fit is an error of TensorFlow, not the end of the process. Settings
    of the environment are kept.
    """
    memory = memory_and_swap()
    limit = max(memory - _LIBRARIES, memory // 2)
    os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")
    os.environ.setdefault("TF_CPU_BFC_MEM_LIMIT_IN_MB", str(limit // 2**20))


def share_gpus(*, runs_models: bool) -> None:
    """Hide GPUs from a process that runs no model; let others take GPU memory as they need it.

    By default TensorFlow takes all memory of all GPUs as soon as it runs anything. XLA keeps its
    programs, which take a minute to compile, in the user's cache. Settings of the environment are
    kept.
    """
    if not runs_models:
        os.environ["CUDA_VISIBLE_DEVICES"] = HIDDEN
        return
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    gpus = nvidia_gpus()
    if gpus:
        flags = os.environ.setdefault("XLA_FLAGS", _CUBLAS_ONLY)
        made_for = f"{version('tensorflow')} {flags} {gpus}"
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(cache, "bert-pipeline", "xla", sha256(made_for.encode()).hexdigest()[:16])
        os.environ.setdefault("TF_XLA_FLAGS", f"{_CACHE_DIRECTORY}={folder} {_CACHE_DEVICES}")


@contextmanager
def filtered_third_party_output(*, verbose: bool) -> Iterator[tuple[TextIO, JobLog | None]]:
    """Redirect file descriptor 2 through `noise_filter.py`.

    Does nothing if `sys.stderr` is redirected.

    Args:
        verbose: whether to pass on all output.

    Yields:
        The stream for our own lines, and the log of the lines that were filtered out; None without
        a filter.
    """
    if verbose:
        be_verbose()
    else:
        ask_for_warnings_only()
    if verbose or sys.__stderr__ is None or sys.stderr is not sys.__stderr__:
        yield sys.stderr, None
        return
    with filtered_stderr() as (own, log_descriptor):
        yield own, JobLog(log_descriptor)
