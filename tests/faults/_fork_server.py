"""The process that `JobForks` starts: a line of JSON in, forks that run commands, a line out."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import io
import json
import mmap
import os
import pkgutil
import shlex
import signal
import struct
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from pathlib import Path


def import_everything() -> None:
    import encodings

    import bert_tf
    import pipeline

    # Codecs too: another user may not read the interpreter's own folder.
    for package in (bert_tf, pipeline, encodings):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            try:
                importlib.import_module(module.name)
            except ImportError as error:  # of an extra, or of another system
                if (error.name or "").split(".")[0] in ("bert_tf", "pipeline"):
                    raise
    import apache_beam.runners.portability.fn_api_runner  # noqa: F401
    import keras.src.backend.tensorflow  # noqa: F401
    import pyarrow.parquet  # noqa: F401


def warm_up() -> None:
    """Run the job that starts no TensorFlow once: forks inherit tables and kernels."""
    from behavior.beam_construction import forget_threads, keep_what_beam_looks_up
    from faults.job_chain import JOBS, write_inputs
    from tensorflow.python.eager import context

    from pipeline.cli.main import main

    keep_what_beam_looks_up()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        write_inputs(Path(folder))
        with suppress(SystemExit), contextlib.redirect_stderr(io.StringIO()):
            main(shlex.split(JOBS["vocab"].command))
    forget_threads()
    assert context._context is None or not context._context._initialized


def run_child(work: str, command: str, fault: dict, streams: list[Path], calls: mmap.mmap) -> None:
    """Run a command, never to return."""
    code = 1
    try:
        os.setsid()
        os.chdir(work)
        for target, path in enumerate(streams, 1):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), target)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
        if fault["user"]:
            os.setgid(fault["user"])
            os.setuid(fault["user"])
        exec(fault["patch"], {})
        shim = ctypes.CDLL(None)
        shim.faults_count.restype = ctypes.c_long
        shim.faults_arm(
            work.encode(),
            fault["journal"].encode(),
            ctypes.c_long(fault["kill_at"]),
            ctypes.c_long(fault["fail_at"]),
            fault["errno"],
            fault["clock"],
        )
        from pipeline.cli.main import main

        try:
            main(shlex.split(command))
        except SystemExit as end:
            code = end.code or 0
        sys.stdout.flush()
        sys.stderr.flush()
        calls[:8] = struct.pack("q", shim.faults_count())
    except BaseException:
        traceback.print_exc(file=sys.__stderr__)
    os._exit(code)


def run(work: str, request: dict) -> list[dict]:
    started, running = time.monotonic(), {}
    for number, (command, fault) in enumerate(
        zip(request["commands"], request["faults"], strict=True)
    ):
        streams = [Path(work).parent / f"{name}-{number}.txt" for name in ("stdout", "stderr")]
        calls = mmap.mmap(-1, 8)
        child = os.fork()
        if not child:
            run_child(work, command, fault, streams, calls)
        running[child] = [number, fault, streams, calls]
    ends: list[dict] = [{} for _ in running]
    while running:
        seconds = time.monotonic() - started
        for child, (number, fault, streams, calls) in list(running.items()):
            limit = fault["kill_after"] or request["timeout"]
            if seconds > limit:
                os.killpg(child, signal.SIGKILL)
            done, status = os.waitpid(child, 0 if seconds > limit else os.WNOHANG)
            if not done:
                continue
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)  # workers that it left behind
            del running[child]
            out, err = (path.read_text(errors="replace") for path in streams)
            ends[number] = {
                "code": os.waitstatus_to_exitcode(status),
                "stdout": out,
                "stderr": err,
                "seconds": time.monotonic() - started,
                "calls": struct.unpack("q", calls[:8])[0],
            }
        time.sleep(0.002)
    return ends


if __name__ == "__main__":
    import_everything()
    warm_up()
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        sys.__stdout__.write(f"{json.dumps(run(sys.argv[1], json.loads(line)))}\n")
        sys.__stdout__.flush()
