"""Lines of other libraries on stderr: noise is dropped, whoever writes it, and nothing else."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bert_tf.base import noise_filter
from bert_tf.base.noise_filter import Log, is_noise

ROOT = Path(__file__).parents[3]
# As TensorFlow 2.20 writes them on a processor with AVX-512 and without a graphics card.
NOISE = """\
WARNING: All log messages before absl::InitializeLog() is called are written to STDERR
I0000 00:00:1795339900.138480   30111 port.cc:153] oneDNN custom operations are on. You may see \
slightly different numerical results due to floating-point round-off errors from different \
computation orders. To turn them off, set the environment variable `TF_ENABLE_ONEDNN_OPTS=0`.
I0000 00:00:1795339354.271306   13775 cpu_feature_guard.cc:227] This TensorFlow binary is optimized.
To enable the following instructions: AVX512F FMA, in other operations, rebuild TensorFlow with \
the appropriate compiler flags.
E0000 00:00:1795339948.235571   30877 util.cc:131] oneDNN supports DT_INT64 only on platforms with \
AVX-512. Falling back to the default Eigen-based implementation if present.
E0000 00:00:1795339931.555864   30466 cuda_platform.cc:52] failed call to cuInit: INTERNAL: CUDA \
error: Failed call to cuInit: UNKNOWN ERROR (303)
2026-01-01 10:00:00.000001: I external/local_xla/xla/service/service.cc:163] XLA service initialized
WARNING:root:Waiting for grpc channel to be ready at localhost:1.
WARNING:tensorflow:5 out of the last 10 calls to <function TrainingStep._run at 0x7ff324d48fe0> \
triggered tf.function retracing. Tracing is expensive and the excessive number of tracings could \
be due to (1) creating @tf.function repeatedly in a loop.
"""
PROBLEMS = """\
W0000 00:00:1795339900.138480   30111 gpu_device.cc:2342] Cannot dlopen some GPU libraries.
E0000 00:00:1795339931.555864   30466 cuda_platform.cc:52] failed call to cuInit: INTERNAL: CUDA \
error: Failed call to cuInit: CUDA_ERROR_UNKNOWN
F0000 00:00:1795339900.138480   30111 tensor.cc:1] Check failed: 1 == 2
Traceback (most recent call last):
ImportError: libfoo.so
"""
START = """\
import os, subprocess, sys
from bert_tf.base.console import Console
from pipeline.cli.startup import filtered_third_party_output
NOISE, PROBLEMS = map(str.encode, sys.argv[1:3])
"""
WRITE_IN_ALL_WAYS = """
with filtered_third_party_output(verbose=VERBOSE) as (own, _):
    os.write(2, NOISE)
    child = "import os, sys; os.write(2, os.fsencode(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", child, NOISE + PROBLEMS], check=True)
    Console(own).info("our line")
    sys.stderr.write(NOISE.decode())
print("after it", file=sys.stderr)
"""
DIE = """
with filtered_third_party_output(verbose=False):
    os.write(2, NOISE + PROBLEMS)
    os.kill(os.getpid(), 9)
"""
ASK = """
with filtered_third_party_output(verbose=False):
    os.write(2, NOISE + b"Passphrase: ")
    sys.stdin.readline()
"""
LOGGED = """
import types
from pathlib import Path
from pipeline.cli.main import main

def run(config, runner, options):
    os.write(2, NOISE)
    options.console.info("our line")
    options.log.keep_beside(Path(f"{sys.argv[3]}.job.log"), "vocab")
    os.write(2, PROBLEMS)
    if sys.argv[4] == "kill":
        os.kill(os.getpid(), 9)
    raise ValueError("odd")

sys.modules["pipeline.jobs.vocabulary"] = types.SimpleNamespace(run=run)
main(["vocab", "--input", sys.executable, "--output", sys.argv[3]])
"""
TERMINAL = """
with filtered_third_party_output(verbose=False) as (own, _):
    print(own.isatty(), sys.stderr.isatty())
"""


def start(program: str, *arguments: str, **streams) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", START + program, NOISE, PROBLEMS, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams},
    )


def test_noise_of_this_process_and_its_children_is_dropped_and_nothing_else():
    _, heard = start(WRITE_IN_ALL_WAYS.replace("VERBOSE", "False")).communicate()
    # Our own lines take a way of their own: the order among theirs stays, not that with ours.
    lines = heard.splitlines(keepends=True)
    assert lines.pop() == "after it\n"
    lines.remove("our line\n")
    assert "".join(lines) == PROBLEMS


def test_verbose_shows_all():
    _, heard = start(WRITE_IN_ALL_WAYS.replace("VERBOSE", "True")).communicate()
    assert heard == NOISE + NOISE + PROBLEMS + "our line\n" + NOISE + "after it\n"


def test_the_last_words_of_a_killed_process_come_through():
    process = start(DIE)
    assert process.communicate()[1] == PROBLEMS
    assert process.returncode == -9


def test_a_prompt_is_shown_before_its_line_ends():
    process = start(ASK, stdin=subprocess.PIPE)
    assert process.stderr.read(len("Passphrase: ")) == "Passphrase: "
    process.communicate("secret\n")
    assert process.returncode == 0


def test_our_lines_go_to_the_terminal_itself():
    ours, theirs = pty.openpty()
    try:
        heard, _ = start(TERMINAL, stderr=theirs).communicate()
    finally:
        os.close(ours)
        os.close(theirs)
    assert heard.split() == ["True", "False"]


@pytest.mark.parametrize("line", PROBLEMS.splitlines())
def test_warnings_and_errors_are_no_noise(line):
    assert not is_noise(line.encode())


@pytest.mark.slow
def test_a_failed_job_names_its_log_which_has_the_noise_and_where_it_failed(tmp_path):
    log = tmp_path / "v.txt.job.log"
    process = start(LOGGED, str(tmp_path / "v.txt"), "fail")
    _, heard = process.communicate()
    assert process.returncode == 1
    lines = heard.splitlines()
    assert lines[-2].startswith("error: unexpected ValueError: odd ")
    assert lines[-1] == f"log: {log}"
    text = log.read_text()  # the filter ends after all who hold stderr
    first, rest = text.split("\n", 1)
    assert first.endswith(" UTC: bert-pipeline vocab")
    assert NOISE in rest
    assert PROBLEMS in rest
    assert re.search(r"^[\d:]{8} our line$", rest, re.MULTILINE)
    assert re.search(r"^[\d:]{8} ValueError: odd$", rest, re.MULTILINE)
    start(LOGGED, str(tmp_path / "v.txt"), "fail").communicate()
    assert log.read_text().count("UTC: bert-pipeline vocab") == 2


def test_the_log_of_a_killed_job_has_its_last_words(tmp_path):
    start(LOGGED, str(tmp_path / "v.txt"), "kill").communicate()
    assert PROBLEMS in (tmp_path / "v.txt.job.log").read_text()


def test_a_file_of_somebody_else_is_no_log(tmp_path):
    foreign = tmp_path / "v.txt.job.log"
    foreign.write_text("dear diary\n")
    _, heard = start(LOGGED, str(tmp_path / "v.txt"), "fail").communicate()
    assert foreign.read_text() == "dear diary\n"
    assert "log: " not in heard


def test_the_log_goes_on_when_nobody_reads_stderr(tmp_path):
    without_our_line = LOGGED.replace('options.console.info("our line")', "os.write(2, PROBLEMS)")
    process = start(without_our_line, str(tmp_path / "v.txt"), "fail")
    process.stderr.close()
    process.communicate()
    text = (tmp_path / "v.txt.job.log").read_text()
    assert text.count(PROBLEMS) == 2
    assert "ValueError: odd" in text


@pytest.fixture
def begin_log(tmp_path, monkeypatch):
    """Begins the part of a run in a log of 100 bytes at most; returns the log and its file."""
    monkeypatch.setattr(noise_filter, "_LONGEST_LOG", 100)
    path = tmp_path / "job.log"

    def begin():
        log = Log()
        log.read(b"\0002026-01-01 10:00:00 UTC: bert-pipeline vocab\0%s\n" % os.fsencode(path))
        return log, path

    return begin


def test_a_full_log_takes_the_lines_of_the_job_alone(begin_log):
    log, path = begin_log()
    for line in ("a" * 200, "b" * 200):
        log.write([line.encode() + b"\n"])
    log.read(b"\1ValueError: odd\n")
    _, first, note, last = path.read_text().splitlines()
    assert (first, last) == ("a" * 200, "ValueError: odd")
    assert "further output of libraries is left out" in note


def test_the_room_of_a_log_is_shared_by_its_runs_and_a_full_one_is_kept_aside(begin_log):
    begin_log()
    log, path = begin_log()
    log.write([b"a" * 60 + b"\n"])  # the two first lines have 90 bytes
    log.write([b"b\n"])
    text = path.read_text()
    assert text.count("UTC: bert-pipeline") == 2
    assert "\nb\n" not in text
    begin_log()
    assert path.with_name("job.log.1").read_text() == text
    assert path.read_text().count("\n") == 1


def test_a_full_log_is_not_renamed_to_a_file_of_somebody_else(begin_log):
    log, path = begin_log()
    log.write([b"a" * 200 + b"\n"])
    foreign = path.with_name("job.log.1")
    foreign.write_text("dear diary\n")
    begin_log()
    assert foreign.read_text() == "dear diary\n"
    assert path.read_text().count("UTC: bert-pipeline") == 2
