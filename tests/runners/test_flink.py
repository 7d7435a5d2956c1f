"""A Flink cluster makes the local runner's bytes, also where a task manager is lost on the way.

`make flink-test` gets Flink and Beam's job server for it and names them in the environment:

    BERT_PIPELINE_FLINK_JARS    folder with `lib` and `bin` of Flink
    BERT_PIPELINE_FLINK_JAR     path of Beam's Flink job server
"""

import os
import random
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from behavior.flink_cluster import ROOT, FlinkCluster
from behavior.timing import wait_until

from bert_tf.data.text.vocab_file import SPECIAL_TOKENS

JARS, JOB_SERVER = "BERT_PIPELINE_FLINK_JARS", "BERT_PIPELINE_FLINK_JAR"
MISSING = [name for name in (JARS, JOB_SERVER) if not os.environ.get(name)]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"{MISSING} not set: make flink-test does")

WORDS = [f"{first}{second}" for first in "bcdfghjklm" for second in "aeiou"]
CUT = ["--set=preprocess.block_megabytes=0.1", "--set=preprocess.num_shards=4"]
JOBS = {
    "static": ["--set=preprocess.dupe_factor=12", "--set=preprocess.pool_megabytes=1"],
    "dynamic": ["--set=preprocess.masking=dynamic"],
    "near": ["--set=preprocess.duplicates=near", "--set=preprocess.duplicate_lines=drop"],
    "curated": [
        "--curation=c4,gopher,gopher_min_stop_words=off,gopher_min_word_length=1.5",
        "--exclude=eval.txt",
        "--languages=en,unknown",
        "--language-threshold=0.99",
        "--personal-data=all",
        "--set=preprocess.duplicates=near",
        "--set=preprocess.duplicate_lines=drop",
    ],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Return a corpus of 1.5 MB, some of which is evaluation data, and its vocabulary."""
    source = random.Random(0)
    folder = tmp_path_factory.mktemp("flink")
    with (folder / "corpus.txt").open("w") as stream, (folder / "eval.txt").open("w") as excluded:
        for number in range(800):
            for _ in range(source.randint(20, 60)):
                line = " ".join(source.choices(WORDS, k=source.randint(5, 20)))
                stream.write(f"{line} .\n")
            stream.write(f"be bo ada{number}@example.com .\n\n")
            if number % 40 == 0:
                excluded.write(f"{line} .\n")
    (folder / "vocab.txt").write_text("\n".join([*SPECIAL_TOKENS, *WORDS, "."]) + "\n")
    return folder


@pytest.fixture(scope="module")
def cluster(folder):
    with FlinkCluster(folder, os.environ[JARS], os.environ[JOB_SERVER]) as cluster:
        yield cluster


def start(folder: Path, *arguments: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "pipeline", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen, *, expected: int = 0) -> str:
    output, _ = process.communicate(timeout=900)
    assert process.returncode == expected, output
    assert "Traceback" not in output
    return output


def preprocess(output: str, job: str, *more: str) -> list[str]:
    files = ["--input=corpus.txt", "--vocab=vocab.txt", f"--output={output}"]
    return ["preprocess", *files, *CUT, *JOBS[job], *more]


def files_of(folder: Path) -> dict[str, bytes]:
    """Return the files of an output that do not tell the runner."""
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if path.name not in ("manifest.json", "config.yaml", "job.log")
    }


def wait_for_blocks(folder: Path, number: int) -> None:
    wait_until(
        lambda: len(list(folder.glob(".unfinished/block-*.finished.json"))) >= number,
        f"{number} blocks are finished",
    )


@pytest.fixture(scope="module")
def local(folder):
    """Return the files that the local runner makes of a job."""
    made: dict[str, dict[str, bytes]] = {}

    def make(job: str) -> dict[str, bytes]:
        if job not in made:
            finish(start(folder, *preprocess(f"local-{job}", job)))
            made[job] = files_of(folder / f"local-{job}")
        return made[job]

    return make


@pytest.mark.parametrize("job", JOBS)
def test_bytes_are_those_of_the_local_runner(job, cluster, local, folder):
    finish(start(folder, *preprocess(f"flink-{job}", job, *cluster.options())))
    assert files_of(folder / f"flink-{job}") == local(job)


def test_a_vocabulary_is_that_of_the_local_runner(cluster, folder):
    for output, options in (("local.txt", []), ("flink.txt", cluster.options())):
        files = ["--input=corpus.txt", f"--output={output}", "--vocab-size=80"]
        finish(start(folder, "vocab", *files, "--set=vocab.block_megabytes=0.5", *options))
    assert (folder / "flink.txt").read_bytes() == (folder / "local.txt").read_bytes()


def test_scored_rows_are_those_of_the_local_runner(cluster, folder, exported_model, scored_table):
    for output, options in (("local.csv", []), ("flink.csv", cluster.options())):
        files = [f"--model={exported_model}", f"--input={scored_table}", f"--output={output}"]
        finish(
            start(
                folder,
                "score",
                *files,
                "--set=score.block_rows=50",
                "--engine=tensorflow",
                "--precision=float32",
                *options,
            )
        )
    assert (folder / "flink.csv").read_bytes() == (folder / "local.csv").read_bytes()
    assert len((folder / "flink.csv").read_text().splitlines()) == 299


def test_a_lost_task_manager_costs_its_unfinished_work_alone(cluster, local, folder):
    process = start(folder, *preprocess("lost", "static", *cluster.options()))
    wait_for_blocks(folder / "lost", 3)
    cluster.replace_task_manager("1", "3")
    finish(process)
    assert files_of(folder / "lost") == local("static")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_command_leaves_no_job_and_resumes(number, cluster, local, folder):
    """Ctrl-C goes to the whole group of processes, as a terminal sends it."""
    output = f"stopped-{number}"
    process = start(folder, *preprocess(output, "static", *cluster.options()))
    wait_for_blocks(folder / output, 3)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.terminate()
    shown = finish(process, expected=128 + number)
    assert "the flink job is canceled" in shown
    assert not {"RUNNING", "CREATED", "RESTARTING"} & set(cluster.states())
    if number == signal.SIGTERM:  # what is found finished does not depend on the signal
        shown = finish(start(folder, *preprocess(output, "static", *cluster.options())))
        assert "already finished" in shown
        assert files_of(folder / output) == local("static")


def test_workers_with_other_versions_are_one_line(cluster, folder):
    found_first = folder / "other/tensorflow_text-1.2.3.dist-info"
    found_first.mkdir(parents=True)
    (found_first / "METADATA").write_text("Name: tensorflow-text\nVersion: 1.2.3\n")
    options = cluster.options(first_in_path=found_first.parent)
    shown = finish(start(folder, *preprocess("versions", "dynamic", *options)), expected=2)
    (error,) = (line for line in shown.splitlines() if line.startswith("error:"))
    assert re.match(r"error: worker \S+ has tensorflow-text 1\.2\.3, but", error)


def test_a_failure_of_the_cluster_is_one_line(cluster, folder):
    broken = [option.replace("/worker", "/no-worker") for option in cluster.options()]
    shown = finish(start(folder, *preprocess("broken", "dynamic", *broken)), expected=1)
    (error,) = (line for line in shown.splitlines() if line.startswith("error:"))
    assert error.startswith("error: the flink job failed: ")
    assert "please report it" not in shown
