"""A preprocess that is interrupted and run again: same bytes, same counts, little done twice."""

import hashlib
import io
import json
import random
import shutil
import signal
from pathlib import Path

import pytest
from behavior.forks import run_forked

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import PreprocessConfig, RunnerConfig
from bert_tf.data.text.vocab_file import SPECIAL_TOKENS
from pipeline.corpus import read
from pipeline.examples import steps
from pipeline.examples.pool import ExampleMaker
from pipeline.jobs import pretraining_examples
from pipeline.outputs import job
from pipeline.outputs.job_spec import RunOptions

pytestmark = pytest.mark.slow  # starts processes and kills them

WORDS = [f"{first}{second}" for first in "bcdfghjklm" for second in "aeiou"]
VOCAB = [*SPECIAL_TOKENS, *WORDS, "##s", "."]
SHARDS = 4  # 3 for training, 1 for evaluation


class Killed(Exception):
    """Stands for a signal that ends the process."""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    """120 documents, one of them twice, a line that is not UTF-8, and the vocabulary."""
    folder = tmp_path_factory.mktemp("corpus")
    source = random.Random(0)
    texts = [
        "\n".join(
            " ".join(source.choices(WORDS, k=source.randint(2, 12))) + " ."
            for _ in range(source.randint(3, 20))
        )
        for _ in range(120)
    ]
    text = "\n\n".join([*texts, texts[5]]).encode()
    (folder / "corpus.txt").write_bytes(text + b"\n\nba \xff be .\nba bi .\n")
    (folder / "vocab.txt").write_text("\n".join(VOCAB) + "\n", encoding="utf-8")
    return folder


def values_of(corpus: Path, output: Path, **values) -> dict:
    return {
        "input": [str(corpus / "corpus.txt")],
        "vocab": str(corpus / "vocab.txt"),
        "output": str(output),
        "max_seq_length": 32,
        "max_predictions_per_seq": 5,
        "dupe_factor": 2,
        "eval_fraction": 0.1,
        "num_shards": SHARDS - 1,
        "block_megabytes": 0.01,
        "pool_megabytes": 0.01,
        **values,
    }


def run(values: dict, *, overwrite: bool = False):
    """Run the job in this process, and return its manifest and its output."""
    said = io.StringIO()
    manifest = pretraining_examples.run(
        build_section(PreprocessConfig, values),
        build_section(RunnerConfig, {"workers": 1}),
        RunOptions(overwrite=overwrite, console=Console(said)),
    )
    return manifest, said.getvalue()


def files_in(folder: Path) -> dict[str, bytes]:
    """All files that are results, by name."""
    return {
        path.name: path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in ("manifest.json", "config.yaml")
    }


class Workers:
    """Counts the work that is done by its kind, and dies at the n-th piece of one kind."""

    def __init__(self, monkeypatch):
        self.done = {"texts": 0, "blocks": 0, "pools": 0, "shards": 0}
        self.dies_at: tuple[str, int] | None = None
        for kind, place, name in (
            ("texts", read, "make_block"),
            ("blocks", steps, "tokenize_block"),
            ("pools", ExampleMaker, "make_runs"),
            ("shards", steps, "write_shard"),
        ):
            monkeypatch.setattr(place, name, self.counted(kind, getattr(place, name)))

    def counted(self, kind, function):
        def work(*args, **kwargs):
            if self.dies_at == (kind, self.done[kind] + 1):
                raise Killed
            self.done[kind] += 1
            return function(*args, **kwargs)

        return work

    def take_counts(self) -> dict[str, int]:
        counts = self.done.copy()
        self.done.update(dict.fromkeys(counts, 0))
        return counts


@pytest.fixture
def workers(monkeypatch) -> Workers:
    return Workers(monkeypatch)


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory):
    """Return an uninterrupted run: manifest, files and how much work it is."""
    output = tmp_path_factory.mktemp("whole") / "data"
    with pytest.MonkeyPatch.context() as patch:
        workers = Workers(patch)
        manifest, _ = run(values_of(corpus, output))
    assert manifest["found_finished"] == {"blocks": 0, "pools": 0, "shards": 0}
    return manifest, files_in(output), workers.take_counts()


def interrupt(workers: Workers, values: dict, kind: str, number: int) -> dict[str, int]:
    """Run until the n-th piece of a kind, and return the finished pieces."""
    workers.dies_at = (kind, number)
    with pytest.raises(Exception, match="Killed"):
        run(values)
    workers.dies_at = None
    assert not (Path(values["output"]) / "manifest.json").exists()
    return workers.take_counts()


@pytest.fixture(scope="module")
def stopped(corpus, tmp_path_factory):
    """Make a copy of a run that was interrupted at its n-th shard."""
    made: dict[int, Path] = {}

    def copy(workers: Workers, number: int, output: Path) -> None:
        if number not in made:
            made[number] = tmp_path_factory.mktemp("stopped") / "data"
            interrupt(workers, values_of(corpus, made[number]), "shards", number)
        shutil.copytree(made[number], output)

    return copy


def same_files(folder: Path) -> dict[str, tuple[int, int]]:
    """Return inode and time of each shard, which change when a file is written again."""
    return {
        path.name: (path.stat().st_ino, path.stat().st_mtime_ns)
        for path in folder.glob("*.tfrecord")
    }


@pytest.mark.parametrize(("kind", "number"), [("blocks", 4), ("pools", 3), ("shards", 2)])
def test_a_run_resumes_where_another_was_interrupted(
    corpus, whole, workers, tmp_path, kind, number
):
    manifest, files, work = whole
    assert work["blocks"] > 4 and work["pools"] == 4 and work["shards"] == SHARDS
    values = values_of(corpus, tmp_path / "data")
    before = interrupt(workers, values, kind, number)
    assert before[kind] == number - 1
    shards = same_files(tmp_path / "data")
    resumed, said = run(values)
    after = workers.take_counts()
    # A text that was read and not tokenized is read again.
    before["texts"] = before["blocks"]
    assert {name: before[name] + after[name] for name in work} == work
    assert resumed["found_finished"] == {
        name: before[name] for name in ("blocks", "pools", "shards")
    }
    assert f"{before['blocks']} blocks of text" in said
    assert files_in(tmp_path / "data") == files
    assert resumed["counts"] == manifest["counts"]
    assert shards.items() <= same_files(tmp_path / "data").items()
    assert len(shards) == before["shards"]


def test_a_run_resumes_after_several_interruptions_in_every_variant(corpus, workers, tmp_path):
    values = {"duplicates": "near", "masking": "dynamic", "compression": "gzip"}
    values |= {"curation": ["gopher_min_words=50", "c4_min_line_words"], "personal_data": ["all"]}
    values |= {"languages": ["en", "unknown"], "exclude": [str(tmp_path / "eval.txt")]}
    documents = (corpus / "corpus.txt").read_bytes().split(b"\n\n")
    (tmp_path / "eval.txt").write_bytes(b"\n\n".join(text[-200:] for text in documents[:40:8]))
    manifest, _ = run(values_of(corpus, tmp_path / "whole", **values))
    assert manifest["counts"]["dropped"]["excluded text"] > 1
    work = workers.take_counts()
    values = values_of(corpus, tmp_path / "data", **values)
    done = dict.fromkeys(work, 0)
    for kind, number in (("blocks", 3), ("pools", 2)):
        for name, amount in interrupt(workers, values, kind, number).items():
            done[name] += amount
    resumed, _ = run(values)
    after = workers.take_counts()
    assert after["texts"] == work["texts"], "duplicates are looked for in all text"
    for name in ("blocks", "pools", "shards"):
        assert done[name] + after[name] == work[name]
    assert files_in(tmp_path / "data") == files_in(tmp_path / "whole")
    for key in ("counts", "rules", "corpus"):
        assert resumed[key] == manifest[key]


@pytest.mark.parametrize(
    "kind", ["*.blobs", "*.finished.json", "*.tfrecord", "*.written.json", "identity.json"]
)
def test_what_was_damaged_meanwhile_is_made_again(corpus, whole, workers, stopped, tmp_path, kind):
    manifest, files, work = whole
    values = values_of(corpus, tmp_path / "data")
    stopped(workers, 3, tmp_path / "data")
    found = sorted((tmp_path / "data").rglob(kind))
    damaged = [path for path in found if path.stat().st_size]
    assert damaged
    for number, path in enumerate(damaged):
        content = bytearray(path.read_bytes())
        content[number * 9973 % len(content)] ^= 1 << number % 8
        path.write_bytes(content)
    resumed, _ = run(values)
    assert files_in(tmp_path / "data") == files
    assert resumed["counts"] == manifest["counts"]
    if kind in ("*.tfrecord", "*.written.json"):
        assert workers.take_counts()["shards"] == work["shards"]


def test_a_manifest_holds_the_hashes_of_what_was_made(whole):
    manifest, files, _ = whole
    assert {made["path"]: made["sha256"] for made in manifest["outputs"]} == {
        name: hashlib.sha256(content).hexdigest() for name, content in files.items()
    }


def test_a_killed_process_leaves_what_it_finished(corpus, whole, workers, tmp_path):
    manifest, files, _ = whole
    values = values_of(corpus, tmp_path / "data")
    script = f"""
import json, os, signal
from bert_tf.config.section import build_section
from bert_tf.config.sections import PreprocessConfig, RunnerConfig
from pipeline.examples import steps
from pipeline.jobs import pretraining_examples
from pipeline.outputs.job_spec import RunOptions

write = steps.write_shard

def write_one_and_die(path, parts, *, compression):
    if "-00001-" in str(path):
        next(iter(parts))
        os.kill(os.getpid(), signal.SIGKILL)
    return write(path, parts, compression=compression)

steps.write_shard = write_one_and_die
pretraining_examples.run(
    build_section(PreprocessConfig, json.loads({json.dumps(values)!r})),
    build_section(RunnerConfig, {{"workers": 1}}),
    RunOptions(),
)
"""
    process = run_forked(script)
    assert process.returncode == -signal.SIGKILL, process.stderr
    shards = same_files(tmp_path / "data")
    resumed, _ = run(values)
    work = workers.take_counts()
    assert work == {"texts": 0, "blocks": 0, "pools": 0, "shards": SHARDS - len(shards)}
    assert shards.items() <= same_files(tmp_path / "data").items()
    assert files_in(tmp_path / "data") == files
    assert resumed["counts"] == manifest["counts"]


def test_nothing_is_made_again_when_only_the_manifest_lacks(
    corpus, whole, workers, tmp_path, monkeypatch
):
    def killed(output, manifest):
        raise Killed

    values = values_of(corpus, tmp_path / "data")
    with monkeypatch.context() as patch:
        patch.setattr(job, "write_manifest", killed)
        with pytest.raises(Killed):
            run(values)
    workers.take_counts()
    shards = same_files(tmp_path / "data")
    assert len(shards) == SHARDS
    resumed, _ = run(values)
    assert not any(workers.take_counts().values())
    assert same_files(tmp_path / "data") == shards
    assert resumed["counts"] == whole[0]["counts"]


def test_what_a_kill_behind_the_manifest_leaves_is_removed(corpus, tmp_path):
    values = values_of(corpus, tmp_path / "data")
    run(values)
    (tmp_path / "data" / ".unfinished").mkdir()
    assert run(values)[0]["already_done"]
    assert not list((tmp_path / "data").glob(".*"))


def test_parts_of_other_inputs_are_never_used(corpus, workers, tmp_path):
    text = (corpus / "corpus.txt").read_bytes()
    (tmp_path / "corpus.txt").write_bytes(text)
    values = values_of(corpus, tmp_path / "data", input=[str(tmp_path / "corpus.txt")])
    interrupt(workers, values, "shards", 2)
    (tmp_path / "corpus.txt").write_bytes(text[:-20])
    with pytest.raises(UsageError, match="its inputs have changed.*--overwrite"):
        run(values)
    (tmp_path / "vocab.txt").write_text("\n".join([*VOCAB, "bab"]) + "\n")
    with pytest.raises(UsageError, match="its inputs have changed"):
        run({**values, "vocab": str(tmp_path / "vocab.txt")})
    with pytest.raises(UsageError, match="unfinished run with another config"):
        run({**values, "seed": 1})
    resumed, _ = run(values, overwrite=True)
    assert not any(resumed["found_finished"].values())
    run({**values, "output": str(tmp_path / "fresh")})
    assert files_in(tmp_path / "data") == files_in(tmp_path / "fresh")


@pytest.mark.parametrize("change", ["cut", "levels", "version"])
def test_parts_that_were_cut_or_made_otherwise_are_not_used(
    corpus, whole, workers, stopped, tmp_path, monkeypatch, change
):
    values = values_of(corpus, tmp_path / "data")
    stopped(workers, 2, tmp_path / "data")
    if change == "cut":
        values["block_megabytes"] = 0.02
    elif change == "levels":
        monkeypatch.setattr("pipeline.examples.plan.MAX_BUCKETS", 2)
        monkeypatch.setattr("pipeline.examples.transforms.MAX_BUCKETS", 2)
    else:
        monkeypatch.setattr(pretraining_examples, "package_versions", lambda: {"numpy": "0"})
    resumed, said = run(values)
    assert not any(resumed["found_finished"].values())
    assert "nothing of the unfinished run can be reused" in said
    assert workers.take_counts()["shards"] == SHARDS
    assert files_in(tmp_path / "data") == whole[1]


def test_a_run_that_failed_on_its_input_starts_again(corpus, whole, workers, tmp_path, monkeypatch):
    def damaged(*args, **kwargs):
        raise InputError("corpus.txt:7: damaged")

    values = values_of(corpus, tmp_path / "data")
    with monkeypatch.context() as patch:
        patch.setattr(steps, "merge_runs", damaged)
        with pytest.raises(InputError, match="damaged"):
            run(values)
    assert not list((tmp_path / "data").glob(".*"))
    workers.take_counts()
    run(values)
    assert workers.take_counts() == whole[2]
    assert files_in(tmp_path / "data") == whole[1]
