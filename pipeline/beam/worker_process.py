"""A worker process of the local runner: Beam's own, but errors meant for the user are printed once.

Run as `python -m pipeline.beam.worker_process`, with the environment variables that Beam sets.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from typing import Any, TextIO

from pipeline.beam.verbosity import is_verbose
from pipeline.beam.worker_errors import failure_in, system_error, user_error_in


def main() -> None:
    """Works until the submitting process has no more work."""
    if not is_verbose():
        # Without a root handler the first warning of an import sends all logs to the terminal.
        logging.getLogger().addHandler(logging.NullHandler())
    from apache_beam.runners.worker import sdk_worker, sdk_worker_main

    if not os.environ.get("BERT_PIPELINE_TRACEBACK"):
        leave_user_errors_to_the_submitter(sdk_worker)
    sdk_worker_main.main(sys.argv)


def leave_user_errors_to_the_submitter(sdk_worker: Any) -> None:
    """Makes Beam's module `sdk_worker` print all but tracebacks of errors meant for the user, those
    of the operating system (a full disk) among them.

    It prints whatever fails in a worker before it sends it to the submitting process, which prints
    such an error as one line. A traceback that cannot be printed must not keep it from being sent.
    """

    def print_unless_meant_for_the_user(text: str, file: TextIO) -> None:
        failed = failure_in(text)
        is_of_system = failed is not None and system_error(*failed) is not None
        if user_error_in(text) is None and not is_of_system:
            with contextlib.suppress(OSError):
                print(text, file=file)

    sdk_worker.print = print_unless_meant_for_the_user


if __name__ == "__main__":
    main()
