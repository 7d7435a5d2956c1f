"""Work in forked children, so that a crash, hours or gigabytes end only one of them.

The parent must not have run TensorFlow, whose threads do not survive a fork: it imports, and
children run.
"""

from __future__ import annotations

import faulthandler
import mmap
import os
import pickle
import resource
import signal
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Any, NoReturn

from bert_tf.base.errors import BertPipelineError

MOST_SECONDS = 10  # of CPU time, which a busy machine does not use up
MOST_BYTES = 2 << 30
EXPECTED = (BertPipelineError, OSError)  # which the command line turns into a line


def in_child(work: Callable[[], Any]) -> Any:
    """Return the result of the work, computed in a forked child.

    AssertionError where it failed there.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        _answer(work, reader, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        answer = stream.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        raise AssertionError(f"ended by {signal.Signals(os.WTERMSIG(status)).name}")
    has_failed, result = pickle.loads(answer)
    if has_failed:
        raise AssertionError(result)
    return result


def _answer(work: Callable[[], Any], reader: int, writer: int) -> NoReturn:
    os.close(reader)
    faulthandler.disable()  # the parent tells how it ended
    try:
        answer = pickle.dumps((False, work()))
    except BaseException:
        answer = pickle.dumps((True, traceback.format_exc()))
    with os.fdopen(writer, "wb") as stream:
        stream.write(answer)
    os._exit(0)


def run_inputs(inputs: int, take: Callable[[int], str], warm_up: Callable[[], Any]) -> Counter[str]:
    """Count what `take` says of inputs by number, each within MOST_SECONDS and MOST_BYTES more
    than the process had after `warm_up`; AssertionError names the one that fails otherwise than
    EXPECTED."""
    current = mmap.mmap(-1, 8)

    def work() -> tuple[Counter[str], int]:
        warm_up()
        limit_memory()
        begin = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        outcomes: Counter[str] = Counter()
        for number in range(inputs):
            current[:] = number.to_bytes(8, "little")
            signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)  # SIGPROF ends the child
            try:
                outcomes[take(number)] += 1
            except EXPECTED as error:
                check_message(error)
                outcomes["refused"] += 1
        signal.setitimer(signal.ITIMER_PROF, 0)
        return outcomes, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - begin

    try:
        outcomes, kilobytes = in_child(work)
    except AssertionError as error:
        raise AssertionError(f"input {int.from_bytes(current[:], 'little')}: {error}") from None
    assert kilobytes << 10 < MOST_BYTES, f"{kilobytes:,} kB more memory than before"
    return outcomes


def limit_memory() -> None:
    """Lets this process take MOST_BYTES more than it has; then allocations fail."""
    with open("/proc/self/statm") as stream:  # noqa: PTH123  no file of a folder
        pages = int(stream.read().split()[0])
    limit = pages * resource.getpagesize() + 2 * MOST_BYTES  # addresses, which threads reserve
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))


def check_message(error: BaseException) -> None:
    """Messages go to a terminal: they have a text, are not long, and hold no control characters."""
    if isinstance(error, BertPipelineError):
        text = str(error)
        assert text.strip(), f"{error!r} says nothing"
        assert len(text) < 20_000, f"a message of {len(text):,} characters: {text[:200]!r}"
