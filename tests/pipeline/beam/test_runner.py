"""The runner and options of a configuration, and the way of failures to the user."""

import io
import os
import signal
import socket
import weakref
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.worker import sdk_worker_main
from apache_beam.utils.shared import Shared
from google.protobuf import json_format

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, RunnerFailed, UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import RunnerConfig
from pipeline.beam.runner import (
    BYTES_THAT_PAY_FOR_WORKERS,
    pipeline_options,
    run_pipeline,
)


def config_for(**values):
    return build_section(RunnerConfig, values)


def run(build, **values):
    console = Console(io.StringIO())
    return run_pipeline(config_for(**values), build, console=console, input_bytes=1)


@pytest.mark.parametrize(
    ("values", "input_bytes", "expected"),
    [
        ({}, 1, []),
        ({"workers": 1}, 10 * BYTES_THAT_PAY_FOR_WORKERS, []),
        ({"workers": 3}, 1, ["--direct_num_workers=3"]),
        ({"options": ("--experiments=x",)}, 1, ["--experiments=x"]),
    ],
)
def test_local_runs_name_the_in_process_runner(values, input_bytes, expected):
    runner, options = pipeline_options(config_for(**values), input_bytes=input_bytes)
    assert isinstance(runner, FnApiRunner)
    assert options == expected


def test_big_inputs_get_a_worker_a_core(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(5)))
    _, options = pipeline_options(config_for(), input_bytes=BYTES_THAT_PAY_FOR_WORKERS)
    assert options == ["--direct_num_workers=5"]


@pytest.mark.parametrize(
    ("values", "runner", "options"),
    [
        (
            {"runner": "flink", "options": ("--flink_master=h:1",), "workers": 4},
            "FlinkRunner",
            ["--flink_master=h:1", "--parallelism=4"],
        ),
        (
            {"runner": "prism", "options": ("--job_endpoint=h:8073",)},
            "PrismRunner",
            ["--job_endpoint=h:8073"],
        ),
        (
            {"runner": "spark", "options": ("--job_endpoint=h:8099",)},
            "PortableRunner",
            ["--job_endpoint=h:8099"],
        ),
        (
            {
                "runner": "dataflow",
                "options": ("--project=p", "--region=r", "--temp_location=gs://b"),
                "workers": 2,
            },
            "DataflowRunner",
            ["--project=p", "--region=r", "--temp_location=gs://b", "--num_workers=2"],
        ),
    ],
)
def test_cluster_runners_get_their_options(values, runner, options):
    assert pipeline_options(config_for(**values), input_bytes=1) == (runner, options)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"runner": "prism"}, "runner prism needs --prism_location or --job_endpoint"),
        ({"runner": "flink"}, "runner flink needs --flink_master or --job_endpoint; give it with"),
        ({"runner": "spark"}, "runner spark needs --spark_master_url"),
        (
            {"runner": "prism", "options": ("--prism_location=/nowhere/prism",)},
            "/nowhere/prism: no such file; correct --prism_location",
        ),
        ({"runner": "dataflow", "options": ("--project=p",)}, "runner dataflow needs --region"),
        (
            {"runner": "spark", "options": ("--job_endpoint=h:1",), "workers": 2},
            "--workers does not apply to runner spark",
        ),
    ],
)
def test_missing_options_and_files_are_named(values, message):
    with pytest.raises(UsageError, match=message):
        pipeline_options(config_for(**values), input_bytes=1)


def test_a_job_server_that_does_not_answer_is_reported_at_once():
    with socket.socket() as silent:  # it has the port and does not listen
        silent.bind(("localhost", 0))
        port = silent.getsockname()[1]
        with pytest.raises(UsageError, match=f"^localhost:{port}: no job server answers .*refused"):
            run(
                lambda p: pytest.fail("built"),
                runner="prism",
                options=(f"--job_endpoint=localhost:{port}",),
            )


def fail(kind):
    raise kind


@pytest.mark.parametrize("kind", [InputError, UsageError])
def test_what_is_meant_for_the_user_comes_through_as_it_was(kind):
    with pytest.raises(kind, match=r"^x\.csv:7: broken; mend it$"):
        run(lambda p: p | beam.Create([kind("x.csv:7: broken; mend it")]) | beam.Map(fail))


@pytest.mark.parametrize("kind", [InputError, UsageError])
def test_so_it_does_through_a_job_server_that_logs_it_too(kind, caplog):
    with pytest.raises(kind, match=r"^x\.csv:7: broken; mend it$"):
        run(
            lambda p: p | beam.Create([kind("x.csv:7: broken; mend it")]) | beam.Map(fail),
            runner="flink",
            options=("--job_endpoint=embed", "--environment_type=LOOPBACK"),
        )
    assert not [record for record in caplog.records if record.name == "root"]


def test_other_failures_stay_what_they_are():
    with pytest.raises(ZeroDivisionError):
        run(lambda p: p | beam.Create([0]) | beam.Map(lambda x: 1 // x))


def test_worker_processes_get_the_options_of_storage():
    options = (
        "--s3_endpoint_url=http://host",
        "--hdfs_port=9870",
        "--number_of_worker_harness_threads=3",
    )
    runner, _ = pipeline_options(config_for(workers=2, options=options), input_bytes=1)
    sent = json_format.MessageToJson(runner._provision_info.provision_info.pipeline_options)
    received = sdk_worker_main._parse_pipeline_options(sent)
    assert received.get_all_options(drop_default=True) == {
        "s3_endpoint_url": "http://host",
        "hdfs_port": "9870",
        "number_of_worker_harness_threads": 3,
    }


class Model:
    """The model that RunInference shares among the threads of a process."""


MODELS = []


def share_model(_):
    MODELS.append(weakref.ref(Shared().acquire(Model)))


def test_a_finished_pipeline_keeps_no_model():
    run(lambda p: p | beam.Create([1]) | beam.Map(share_model))
    assert [model() for model in MODELS] == [None]


def test_passwords_are_not_shown():
    said = io.StringIO()
    options = ("--s3_secret_access_key=abc", "--s3_session_token=abc", "--s3_region_name=here")
    run_pipeline(
        config_for(workers=1, options=options),
        lambda pipeline: pipeline | beam.Create([1]),
        console=Console(said),
        input_bytes=1,
    )
    shown = "--s3_secret_access_key=… --s3_session_token=… --s3_region_name=here"
    assert shown in said.getvalue() and "abc" not in said.getvalue()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/net/tcp").is_file(), reason="Linux")
def test_worker_processes_are_served_on_this_machine_only(tmp_path):
    """Beam's servers do not authenticate clients, and read any file for them."""
    submitter = os.getpid()

    def listening(_):
        from pathlib import Path

        links = Path(f"/proc/{submitter}/fd").iterdir()
        open_files = {str(link.readlink()) for link in links if link.is_symlink()}
        for table in ("tcp", "tcp6"):
            for line in Path("/proc/net", table).read_text().splitlines()[1:]:
                _, local, _, state, *_, inode = line.split()[:10]
                if state == "0A" and f"socket:[{inode}]" in open_files:
                    yield local.partition(":")[0]

    def write(addresses):
        (tmp_path / "addresses").write_text("\n".join(addresses))

    run(
        lambda p: (
            p
            | beam.Create([0])
            | beam.FlatMap(listening)
            | beam.combiners.ToList()
            | beam.Map(write)
        ),
        workers=2,
    )
    addresses = (tmp_path / "addresses").read_text().split()
    assert len(addresses) >= 4  # control, data, state, logs
    # 127.0.0.1, ::ffff:127.0.0.1 and ::1, words of the machine's byte order
    mine = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
    assert set(addresses) <= mine


@pytest.mark.slow
@pytest.mark.parametrize("is_early", [True, False])
def test_a_killed_worker_ends_the_job(monkeypatch, is_early):
    """Beam waits for a worker that dies before it connects, or raises an error of a channel."""

    def die(_):
        os.kill(os.getpid(), signal.SIGKILL)

    if is_early:
        monkeypatch.setattr("pipeline.beam.runner._WORKER_COMMAND", "exit 137 #")
    with pytest.raises(RunnerFailed, match="a worker process crashed or was killed"):
        run(lambda p: p | beam.Create([0, 1]) | beam.Reshuffle() | beam.Map(die), workers=2)
