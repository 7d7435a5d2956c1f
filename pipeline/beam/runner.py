"""Runs Beam pipelines: the choice of runner and options, and errors for the user."""

from __future__ import annotations

import logging
import re
import shlex
import socket
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apache_beam as beam
import grpc
from apache_beam.options.pipeline_options import (
    GoogleCloudOptions,
    PipelineOptions,
    PortableOptions,
)
from apache_beam.portability.api import beam_fn_api_pb2, beam_provision_api_pb2
from apache_beam.runners.portability import local_job_service
from apache_beam.runners.portability.fn_api_runner import FnApiRunner, worker_handlers
from apache_beam.runners.portability.fn_api_runner.fn_runner import ExtendedProvisionInfo
from apache_beam.transforms.environments import SubprocessSDKEnvironment
from apache_beam.utils import interactive_utils
from apache_beam.utils.shared import Shared

from bert_tf.base import errors
from bert_tf.base.console import Console
from bert_tf.base.errors import GraphWritten, RunnerFailed, UsageError
from bert_tf.base.gpus import HIDDEN
from bert_tf.base.library_output import is_verbose
from bert_tf.base.processor import usable_cores
from bert_tf.config.sections.tables import RunnerConfig
from pipeline.beam.cluster import (
    CheckInstallations,
    drop_errors_of_closed_connections,
    flink_job,
    let_job_server_outlive_ctrl_c,
    run_on_cluster,
)
from pipeline.beam.progress import ProgressLine, ProgressWatch, text_line
from pipeline.beam.workers import user_error

# Worker processes take about 7 seconds to start: less input than this is read sooner by one.
BYTES_THAT_PAY_FOR_WORKERS = 400_000_000

_JOB_ENDPOINT = "--job_endpoint"
_FILE_OPTIONS = ("--prism_location", "--flink_job_server_jar", "--spark_job_server_jar")
_SECONDS_TO_ANSWER = 10.0  # of a job server
# Each runner needs one option of each row.
_NEEDED_OPTIONS: dict[str, tuple[tuple[str, ...], ...]] = {
    "prism": (("--prism_location", _JOB_ENDPOINT),),
    "flink": (("--flink_master", _JOB_ENDPOINT),),
    "spark": (("--spark_master_url", "--spark_rest_url", _JOB_ENDPOINT),),
    "dataflow": (("--project",), ("--region",), ("--temp_location",)),
}
_NO_MORE = worker_handlers.BeamFnControlServicer._DONE_MARKER
_START_WORKER = worker_handlers.SubprocessSdkWorkerHandler.start_worker
_ENDED = (
    "a worker process crashed or was killed, most often for lack of memory; run the same command "
    "again, which keeps finished work, with fewer --workers"
)
_WORKERS_OPTION = {"flink": "--parallelism", "dataflow": "--num_workers"}
_WHO_DECIDES = {
    "prism": "leave it out, Prism decides",
    "spark": "set the executors where the cluster is set up",
}
# Without the variable, each thread of a worker fills its own arena of glibc's malloc, which takes
# twice the memory in the end; see benchmarks/NOTES.md.
_WORKER_COMMAND = (
    "MALLOC_ARENA_MAX=${MALLOC_ARENA_MAX:-2} "
    f"{shlex.quote(sys.executable)} -m pipeline.beam.worker_process"
)
_SECRET = re.compile(r"(--\w*(?:secret|password|token|access_key)\w*)=.*", re.DOTALL)
_DROPPED = logging.NullHandler()


@contextmanager
def _not_interactive() -> Iterator[None]:
    """Let Beam build and run a pipeline in a notebook as it does anywhere else.

    In IPython, Beam searches for interactive pipelines of the user at every transform. For that it
    imports its dataframes, which need pandas before version 3 (Beam 2.77). It also leaves the
    pipeline's temporary folder to its interactive runner. Pipelines of this package are never
    interactive, so Beam's check for IPython is off while one runs, and on again afterwards for
    pipelines that the user builds in the notebook.
    """
    checking = (interactive_utils, beam.pipeline)
    before = [module.is_in_ipython for module in checking]
    for module in checking:
        module.is_in_ipython = bool  # called without arguments: False
    try:
        yield
    finally:
        for module, is_in_ipython in zip(checking, before, strict=True):
            module.is_in_ipython = is_in_ipython


@_not_interactive()
def run_pipeline(
    config: RunnerConfig,
    build: Callable[[beam.Pipeline], None],
    *,
    console: Console,
    input_bytes: int,
    progress: ProgressLine = text_line,
    takes_gpu: bool = False,
) -> None:
    """Build a pipeline and run it to its end.

    Args:
        config: runner, its options and the number of workers.
        build: applies the job's transforms.
        console: shows the progress.
        input_bytes: decides whether local worker processes pay off.
        progress: formats the reports of workers.
        takes_gpu: whether local worker processes run models, on a GPU if there is one.

    Raises:
        UsageError: an option the runner needs is missing, or the runner cannot be reached.
        InputError: the pipeline failed on its input.
        RunnerFailed: a runner other than the local one failed for a reason of its own.
        GraphWritten: `--template_location` is one of the options.
    """
    _keep_beam_quiet()
    runner, options = pipeline_options(config, input_bytes=input_bytes, takes_gpu=takes_gpu)
    if not isinstance(runner, FnApiRunner):
        console.info(f"running on {config.runner}: {_shown(options)}")
    elif options:
        console.info(f"running in worker processes: {_shown(options)}")
    name = f"bert-pipeline-{uuid.uuid4().hex[:12]}"
    beam_options = PipelineOptions([*options, f"--job_name={name}"])
    if config.runner in ("flink", "spark"):
        let_job_server_outlive_ctrl_c(beam_options)
    _check_endpoint_answers(beam_options)
    pipeline = beam.Pipeline(runner=runner, options=beam_options)
    if not isinstance(runner, FnApiRunner):
        _ = pipeline | "CheckInstallations" >> CheckInstallations()
    build(pipeline)
    if not is_verbose():
        drop_errors_of_closed_connections()
    if isinstance(runner, FnApiRunner):
        with ProgressWatch(console, progress):
            _run_locally(pipeline)
    else:
        template = beam_options.view_as(GoogleCloudOptions).template_location
        if template is not None:
            pipeline.run()
            raise GraphWritten(
                f"the graph of the job is in {template}; once that job is done, run the same "
                "command with --runner local: it finds the work finished, and writes the manifest"
            )
        run_on_cluster(pipeline, config.runner, console, flink_job(options, name))


class _GrpcOfThisMachine:
    """The module `grpc` for Beam's local runner, with servers that listen only on this machine.

    Beam's servers do not authenticate clients and listen on all addresses, so that another machine
    could read any file of the user.
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(grpc, name)

    def server(self, *arguments: Any, **options: Any) -> grpc.Server:
        server = grpc.server(*arguments, **options)
        listen = server.add_insecure_port
        server.add_insecure_port = lambda address: listen(address.replace("[::]", "localhost"))
        return server


def _start_worker(handler: Any) -> None:
    """Let requests to a worker process fail once it has ended; Beam would wait for answers."""
    _START_WORKER(handler)
    connection = handler.control_conn
    push = connection.push
    answer = beam_fn_api_pb2.InstructionResponse(error=f"{errors.__name__}.RunnerFailed: {_ENDED}")

    def push_and_answer(request: Any) -> Any:
        future = push(request)
        if future is not None:
            future.set(answer)
        return future

    def refuse() -> None:
        handler.worker_thread.join()
        connection.push = push_and_answer
        for future in [*connection._futures_by_id.values()]:
            future.set(answer)

    def stop() -> None:
        push(_NO_MORE)  # else a worker that is only starting now would wait for requests
        handler.worker_thread.join()

    handler.stop_worker = stop
    threading.Thread(target=refuse, daemon=True).start()


def _run_locally(pipeline: beam.Pipeline) -> None:
    """Run a pipeline on this machine; raise the errors of `run_pipeline`."""
    local_grpc = _GrpcOfThisMachine()
    worker_handlers.grpc = local_grpc
    local_job_service.grpc = local_grpc
    worker_handlers.SubprocessSdkWorkerHandler.start_worker = _start_worker
    try:
        pipeline.run().wait_until_finish()
    except Exception as error:  # Beam wraps the errors of workers in its own types
        is_closed = str(error).startswith("Channel closed")  # by a worker that has ended
        failure = RunnerFailed(_ENDED) if is_closed else user_error(error)
        if failure is None:
            raise
        raise failure from error
    finally:
        Shared().acquire(set)  # or Beam would keep the last model of the pipeline


def pipeline_options(
    config: RunnerConfig, *, input_bytes: int, takes_gpu: bool = False
) -> tuple[FnApiRunner | str, list[str]]:
    """Return the runner (an object for the local one, else Beam's name) and its checked options.

    Args:
        config: runner, its options and the number of workers.
        input_bytes: decides whether local worker processes pay off.
        takes_gpu: whether local worker processes may see a GPU.

    Raises:
        UsageError: an option is missing, or does not apply to the runner.
    """
    options = list(config.options)
    if config.runner == "local":
        is_large = input_bytes >= BYTES_THAT_PAY_FOR_WORKERS
        workers = config.workers or (usable_cores() if is_large else 1)
        if workers == 1:
            return FnApiRunner(), options  # `DirectRunner` would try to download another one
        hidden = "" if takes_gpu else f"CUDA_VISIBLE_DEVICES={HIDDEN} "
        environment = SubprocessSDKEnvironment.from_command_string(hidden + _WORKER_COMMAND)
        runner = FnApiRunner(environment, provision_info=_options_of_workers(options))
        return runner, [f"--direct_num_workers={workers}", *options]
    for option in options:
        name, _, value = option.partition("=")
        if name in _FILE_OPTIONS and "://" not in value and not Path(value).is_file():
            raise UsageError(f"{value}: no such file; correct {name}")
    names = {option.partition("=")[0] for option in options}
    for alternatives in _NEEDED_OPTIONS[config.runner]:
        if not names & set(alternatives):
            raise UsageError(
                f"runner {config.runner} needs {' or '.join(alternatives)}; give it with "
                f"--set runner.options={alternatives[0]}=VALUE or under runner.options in YAML"
            )
    if config.workers:
        if config.runner not in _WORKERS_OPTION:
            raise UsageError(
                f"--workers does not apply to runner {config.runner}; {_WHO_DECIDES[config.runner]}"
            )
        options.append(f"{_WORKERS_OPTION[config.runner]}={config.workers}")
    # Prism's own class has workers in this process unless set otherwise.
    if _JOB_ENDPOINT in names and config.runner != "prism":
        return "PortableRunner", options
    return f"{config.runner.capitalize()}Runner", options


def _shown(options: list[str]) -> str:
    """Format options without passwords and keys."""
    return " ".join(_SECRET.sub(r"\1=…", option) for option in options)


def _options_of_workers(options: list[str]) -> ExtendedProvisionInfo:
    """Return the options for local workers, which need them for storage; Beam passes none."""
    chosen = PipelineOptions(options).get_all_options(drop_default=True)
    info = beam_provision_api_pb2.ProvisionInfo(retrieval_token="unused")
    for name, value in chosen.items():
        # Numbers would become floating-point numbers, which options of whole numbers refuse.
        info.pipeline_options[name] = str(value) if type(value) in (int, float) else value
    return ExtendedProvisionInfo(info)


def _keep_beam_quiet() -> None:
    if is_verbose():
        return
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_no_message_of_a_job_server)
    prism = logging.getLogger("PrismJobServer")
    prism.propagate = False
    prism.addHandler(_DROPPED)


def _is_no_message_of_a_job_server(record: logging.LogRecord) -> bool:
    return record.module != "portable_runner"


def _check_endpoint_answers(options: PipelineOptions) -> None:
    """Raise UsageError if a job server does not answer.

    Beam itself would wait for five minutes and then report nothing.
    """
    endpoint = options.view_as(PortableOptions).job_endpoint
    if endpoint is None or endpoint == "embed":
        return
    host, _, port = endpoint.rpartition(":")
    try:
        socket.create_connection((host, int(port)), _SECONDS_TO_ANSWER).close()
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{endpoint}: no job server answers ({error}); start it, or correct {_JOB_ENDPOINT}"
        ) from None
