"""A worker process, `bert-pipeline-worker`: Beam's own, but it leaves user errors to the job."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
from collections.abc import Sequence
from typing import Any, TextIO

from bert_tf.base.library_output import is_verbose
from pipeline.beam.workers import failure_in, system_error, user_error_in


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a worker until the runner ends it.

    Args:
        arguments: those that the runner passes; None for the command line's.
    """
    parser = argparse.ArgumentParser(prog="pipeline.beam.worker_process")
    parser.add_argument("--id", default="", help="of the worker")
    parser.add_argument(
        "--provision_endpoint", default="", help="host:port of the worker's settings"
    )
    # Runners also pass arguments that workers in Python do not need.
    options, _ = parser.parse_known_args(arguments)
    if not is_verbose():
        # Without a root handler the first warning of an import sends all logs to the terminal.
        logging.getLogger().addHandler(logging.NullHandler())
    if options.provision_endpoint:
        os.environ.update(_provisioned(options.id, options.provision_endpoint))
    # Imported now, since the import reads the worker's id from the environment.
    from apache_beam.runners.worker import sdk_worker, sdk_worker_main

    if not os.environ.get("BERT_PIPELINE_TRACEBACK"):
        leave_user_errors_to_the_submitter(sdk_worker)
    sdk_worker_main.main(sys.argv[:1])


def leave_user_errors_to_the_submitter(sdk_worker: Any) -> None:
    """Keep Beam's module `sdk_worker` from printing tracebacks of errors meant for the user.

    The submitter prints them. A traceback that cannot be printed is still sent to it.
    """

    def print_unless_meant_for_the_user(text: str, file: TextIO) -> None:
        failed = failure_in(text)
        is_of_system = failed is not None and system_error(*failed) is not None
        if user_error_in(text) is None and not is_of_system:
            with contextlib.suppress(OSError):
                print(text, file=file)

    sdk_worker.print = print_unless_meant_for_the_user


def _provisioned(worker: str, provision_endpoint: str) -> dict[str, str]:
    """Ask the runner for the environment of a worker."""
    import grpc
    from apache_beam.portability.api import beam_provision_api_pb2, beam_provision_api_pb2_grpc
    from google.protobuf import json_format, text_format

    with grpc.insecure_channel(provision_endpoint) as channel:
        service = beam_provision_api_pb2_grpc.ProvisionServiceStub(channel)
        request = beam_provision_api_pb2.GetProvisionInfoRequest()
        info = service.GetProvisionInfo(request, metadata=[("worker_id", worker)]).info
    endpoints = {
        f"{name.upper()}_API_SERVICE_DESCRIPTOR": getattr(info, f"{name}_endpoint")
        for name in ("control", "logging", "status")
        if info.HasField(f"{name}_endpoint")
    }
    return {
        "WORKER_ID": worker,
        "PIPELINE_OPTIONS": json_format.MessageToJson(info.pipeline_options),
        "RUNNER_CAPABILITIES": " ".join(info.runner_capabilities),
        **{name: text_format.MessageToString(endpoint) for name, endpoint in endpoints.items()},
    }


if __name__ == "__main__":
    main()
