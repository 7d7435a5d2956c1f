"""Real runners make the bytes, counts and messages of the local one.

Each runner is tried where the environment says what it is, and skipped elsewhere:

    BERT_PIPELINE_PRISM         path of Prism's binary
    BERT_PIPELINE_FLINK_JAR     path of Beam's Flink job server, which runs a Flink of its own
    BERT_PIPELINE_SPARK_JAR     path of Beam's Spark job server, which runs a Spark of its own
    BERT_PIPELINE_JOB_ENDPOINT  host:port of any job server that runs already

`deploy/README.md` says where these come from.
"""

import gzip
import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from bert_tf.data.text.vocab_file import SPECIAL_TOKENS

pytestmark = pytest.mark.slow  # runs whole jobs on each runner

ROOT = Path(__file__).parents[2]
WORDS = [f"{first}{second}" for first in "bcdfghjklm" for second in "aeiou"]
VOCAB = [*SPECIAL_TOKENS, *WORDS, "##s", "."]
RUNNERS = {
    "BERT_PIPELINE_PRISM": ("prism", ["--prism_location={}"]),
    "BERT_PIPELINE_FLINK_JAR": (
        "flink",
        ["--flink_master=[local]", "--flink_job_server_jar={}", "--parallelism=2"],
    ),
    "BERT_PIPELINE_SPARK_JAR": (
        "spark",
        ["--spark_master_url=local[2]", "--spark_job_server_jar={}"],
    ),
    "BERT_PIPELINE_JOB_ENDPOINT": (
        "flink",
        ["--job_endpoint={}", "--environment_type=LOOPBACK"],
    ),
}
# What makes each run go through transforms of its own.
CUT = {"block_megabytes": 0.01}
EXAMPLES = {**CUT, "max_seq_length": 32, "max_predictions_per_seq": 5, "num_shards": 3}
JOBS = {
    "vocab": {**CUT, "vocab_size": 120, "min_frequency": 2},
    "preprocess-static": {**EXAMPLES, "dupe_factor": 5},
    "preprocess-pools": {**EXAMPLES, "pool_megabytes": 0.01, "random_tokens": "unigram"},
    "preprocess-exact": {**EXAMPLES, "duplicates": "exact"},
    "preprocess-near": {**EXAMPLES, "duplicates": "near", "duplicate_lines": "drop"},
    "preprocess-curated": {
        **EXAMPLES,
        "duplicates": "near",
        "duplicate_lines": "drop",
        "languages": "[unknown,en]",
        "language_threshold": 0.99,
        "curation": "[c4,gopher_min_words=60,c4_min_sentences=2]",
        "personal_data": "[all]",
        "exclude": "[eval.tsv]",
        "min_document_words": 70,
    },
    "preprocess-dynamic": {**EXAMPLES, "masking": "dynamic"},
    "score": {"block_rows": 50, "engine": "tensorflow", "precision": "float32"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, exported_model, scored_table) -> Path:
    """Return a corpus of three files with copies, near copies and bad lines.

    A model and rows to score.
    """
    source = random.Random(0)
    documents = [
        "\n".join(
            " ".join(source.choices(WORDS, k=source.randint(4, 12))) + " ."
            for _ in range(source.randint(5, 20))
        )
        for _ in range(150)
    ]
    near = max(documents, key=len)
    for number, document in enumerate(documents[::10]):
        documents[10 * number] = f"{document}\nbe bo bu ada{number}@example.com 8.8.8.8 .\n"
    documents += [documents[5], documents[40], near.replace(near.split()[0], "ba", 1)]
    folder = tmp_path_factory.mktemp("runners")
    # Of long documents, which rules keep.
    shared = [" ".join(document.split()[-40:]) for document in sorted(documents, key=len)[-9::3]]
    (folder / "eval.tsv").write_text("".join(f"0\t{text.upper()}\n" for text in shared))
    text = "\n\n".join(documents[:60]).encode()
    (folder / "a.txt").write_bytes(text + b"\n\nba \xff be .\nba be .\n")
    rows = "".join(json.dumps({"text": document}) + "\n" for document in documents[60:110])
    (folder / "b.jsonl").write_text(rows + "{broken\n")
    with gzip.open(folder / "c.jsonl.gz", "wt") as stream:
        for document in documents[110:]:
            stream.write(json.dumps({"text": document}) + "\n")
    (folder / "vocab.txt").write_text("\n".join(VOCAB) + "\n")
    (folder / "model").symlink_to(exported_model)
    (folder / "rows.csv").symlink_to(scored_table)
    return folder


def command(job: str, inputs: Sequence[str], output: str, runner: list[str]) -> list[str]:
    """Return the command line of one of JOBS; paths are relative to the folder of the corpus."""
    name = job.partition("-")[0]
    values = [f"--set={name}.{key}={value}" for key, value in JOBS[job].items()]
    if name == "score":
        inputs, output = ["rows.csv"], f"{output}.csv"
    files = [f"--input={path}" for path in inputs]
    others = {"vocab": [], "preprocess": ["--vocab=vocab.txt"], "score": ["--model=model"]}
    return [name, *files, *others[name], f"--output={output}", *values, *runner]


def run(folder: Path, arguments: list[str]) -> subprocess.CompletedProcess:
    start = "from pipeline.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", start, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.fixture(params=RUNNERS)
def runner(request) -> list[str]:
    """Return the options that choose a runner."""
    given = os.environ.get(request.param)
    if not given:
        pytest.skip(f"{request.param} is not set: it names what runs the pipelines")
    name, options = RUNNERS[request.param]
    return [f"--runner={name}", f"--set=runner.options={[o.format(given) for o in options]}"]


@pytest.fixture(scope="module")
def local(folder):
    """Return the result of a job on the local runner: (files by name, manifest)."""
    made: dict[str, tuple] = {}

    def make(job: str) -> tuple[dict[str, bytes], dict]:
        if job not in made:
            output = f"local-{job}"
            done = run(folder, command(job, ["a.txt", "b.jsonl", "c.jsonl.gz"], output, []))
            assert done.returncode == 0, done.stderr
            made[job] = results(folder, output)
        return made[job]

    return make


def results(folder: Path, output: str) -> tuple[dict[str, bytes], dict]:
    """Return the files of an output by name, without its own path in them, and its manifest."""
    paths = [path for path in folder.rglob("*") if output in str(path) and path.is_file()]
    files = {
        str(path.relative_to(folder)).replace(output, "OUTPUT"): path.read_bytes()
        for path in paths
        if not path.name.endswith(("manifest.json", "config.yaml", "job.log"))
    }
    (manifest,) = (path for path in paths if path.name.endswith("manifest.json"))
    return files, json.loads(manifest.read_text())


@pytest.mark.parametrize("job", JOBS)
def test_bytes_counts_and_messages_are_those_of_the_local_runner(job, runner, local, folder):
    expected, expected_manifest = local(job)
    output = f"{runner[0].partition('=')[2]}-{job}"
    done = run(folder, command(job, ["a.txt", "b.jsonl", "c.jsonl.gz"], output, runner))
    assert done.returncode == 0, done.stderr
    files, manifest = results(folder, output)
    assert files.keys() == expected.keys()
    assert [name for name in files if files[name] != expected[name]] == []
    for key in ("counts", "rules"):
        assert manifest.get(key) == expected_manifest.get(key)
    assert sum(manifest["counts"]["rejected"].values()) == 2
    if "exclude" in JOBS[job]:
        assert manifest["counts"]["dropped"]["excluded text"] and manifest["counts"]["replaced"]
        assert {"OUTPUT/excluded.jsonl", "OUTPUT/dropped.jsonl", "OUTPUT/DATA_CARD.md"} < set(files)
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) < 25, done.stderr
    assert done.stdout == ""


def test_what_cannot_be_read_is_one_line(runner, folder):
    packed = gzip.compress(b'{"text": "ba be . bi bo ."}\n' * 1000)
    (folder / "cut.jsonl.gz").write_bytes(packed[:-20])
    for job in ("vocab", "preprocess-static"):
        done = run(folder, command(job, ["cut.jsonl.gz"], f"broken-{job}", runner))
        assert done.returncode == 1
        errors = [line for line in done.stderr.splitlines() if "error" in line.lower()]
        assert len(errors) == 1, done.stderr
        assert errors[0].startswith("error: cut.jsonl.gz: cannot be read to its end")
        assert "Traceback" not in done.stderr
        assert not list(folder.rglob(f"broken-{job}/manifest.json"))
