"""A chain of tiny jobs from text to neighbors, their undisturbed outputs, and how these compare."""

from __future__ import annotations

import atexit
import contextlib
import csv
import dataclasses
import functools
import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

from faults.job_forks import JobForks


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job:
    """A command that reads outputs of jobs before it, and one that reads its output."""

    name: str
    command: str
    output: str
    reader: str  # writes `read`, a file or folder
    needs: tuple[str, ...]
    reads: str  # an input, a file
    other: str  # flags of another config
    weight: int  # how often it is drawn: jobs that start TensorFlow take longer


_TRAINING = "batch_size: 4, precision: float32, xla: 'off', checkpoint_every: 2, report_to: []"
FILES = {
    "model.json": json.dumps(
        {
            "vocab_size": 80,
            "hidden_size": 16,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "intermediate_size": 32,
            "max_position_embeddings": 32,
        }
    ),
    "rules.yaml": "gopher_min_words: 5\n",
    "train.yaml": "train: {data: data, output: run, model_config: model.json, steps: 4, "
    f"log_every: 1, eval_every: 2, {_TRAINING}}}\n",
    "finetune.yaml": "finetune: {task: classification, train: rows.csv, eval: dev.csv, init: run, "
    f"output: labels, epochs: 2, max_seq_length: 16, {_TRAINING}}}\n",
}
_JOBS = (
    Job(
        name="vocab",
        command="vocab --input corpus.txt --output vocab.txt --vocab-size 80 --workers 1",
        output="vocab.txt",
        reader="preprocess --input small.txt --vocab vocab.txt --output read "
        "--max-seq-length 16 --workers 1",
        needs=(),
        reads="corpus.txt",
        other="--vocab-size 90",
        weight=6,
    ),
    Job(
        name="preprocess",
        command="preprocess --input corpus.txt --vocab vocab.txt --output data "
        "--max-seq-length 32 --dupe-factor 1 --curation rules.yaml --workers 1",
        output="data",
        reader="train --data data --output read --model-config model.json --steps 1",
        needs=("vocab",),
        reads="corpus.txt",
        other="--seed 5",
        weight=6,
    ),
    Job(
        name="train",
        command="train --config train.yaml",
        output="run",
        reader="export --run run --output read --format huggingface",
        needs=("preprocess",),
        reads="data/train-00000-of-00001.tfrecord",
        other="--seed 5",
        weight=2,
    ),
    Job(
        name="finetune",
        command="finetune classification --config finetune.yaml",
        output="labels",
        reader="export --run labels --output read --format huggingface",
        needs=("train",),
        reads="rows.csv",
        other="--seed 5",
        weight=2,
    ),
    Job(
        name="export",
        command="export --run labels --output model",
        output="model",
        reader="score --model model --input new.csv --output read.csv",
        needs=("finetune",),
        reads="labels/best/model.safetensors",
        other="--format huggingface",
        weight=2,
    ),
    Job(
        name="score",
        command="score --model model --input new.csv --output scored.csv --workers 1",
        output="scored.csv",
        reader="verify scored.csv",
        needs=("export",),
        reads="new.csv",
        other="--limit 3",
        weight=5,
    ),
    Job(
        name="embed",
        command="embed --model labels --input dev.csv --output vectors.parquet --workers 1",
        output="vectors.parquet",
        reader="search --queries new.csv --corpus vectors.parquet --model labels --output read.csv",
        needs=("finetune",),
        reads="dev.csv",
        other="--limit 3",
        weight=4,
    ),
    Job(
        name="search",
        command="search --queries new.csv --corpus vectors.parquet --model labels "
        "--top-k 2 --output nearest.csv --workers 1",
        output="nearest.csv",
        reader="verify nearest.csv",
        needs=("embed",),
        reads="vectors.parquet",
        other="--top-k 1",
        weight=4,
    ),
)
JOBS = {job.name: job for job in _JOBS}
# Times, and where and by which process something was made.
_VARYING_FILES = ("job.log", ".seconds", ".bert-pipeline.lock")
_VARYING_KEYS = {
    *("timings", "finished", "peak_memory_bytes", "time", "examples_per_second"),
    *("tokens_per_second", "rows_per_second", "elapsed_seconds", "checksum"),
    *("training_seconds", "queries_per_second", "found_finished", "mfu"),
}


def write_inputs(folder: Path) -> None:
    """Text of two kinds of words, labeled rows of these, and rows to score."""
    source = Random(0)
    words = {
        label: [first + second for first in letters for second in "aeiou"]
        for label, letters in (("river", "bcdfg"), ("street", "klmnp"))
    }

    def text(label: str, count: int) -> str:
        return " ".join(source.choices(words[label], k=count))

    documents = ["\n".join(text(label, 8) + " ." for _ in range(8)) for label in [*words] * 15]
    (folder / "corpus.txt").write_text("\n\n".join(documents) + "\n\nba be .\n")
    (folder / "small.txt").write_text("\n\n".join(documents[:4]))
    for name, per_label in (("rows.csv", 8), ("dev.csv", 4), ("new.csv", 10)):
        with (folder / name).open("w", newline="") as stream:
            table = csv.writer(stream)
            table.writerow(["text", "label"])
            table.writerows([text(label, 6), label] for label in [*words] * per_label)
    for name, content in FILES.items():
        (folder / name).write_text(content)


class Chain:
    """Jobs whose inputs exist; `reset` brings all outputs back to the undisturbed ones."""

    def __init__(self, folder: Path, forks: JobForks):
        self.forks = forks
        self.work = forks.work
        self._kept = folder / "kept"
        self.seconds: dict[str, float] = {}
        self.calls: dict[str, int] = {}
        self._undisturbed: dict[str, dict[str, Any]] = {}
        self._drawn: list[Job] = []
        write_inputs(self.work)

    def provide(self, names: Iterable[str]) -> None:
        """Make the outputs of these jobs, and of those that they need; `draw` draws from these."""
        names = tuple(names)
        for name in _with_needs(names):
            if name not in self.seconds:
                self._make(JOBS[name])
        shutil.rmtree(self._kept, ignore_errors=True)
        shutil.copytree(self.work, self._kept)
        self._drawn = [JOBS[name] for name in names]

    def _make(self, job: Job) -> None:
        ended = self.forks.run(job.command).succeeded()
        self.seconds[job.name], self.calls[job.name] = ended.seconds, ended.calls
        self._undisturbed[job.name] = self.state(job.output)

    def draw(self, random: Random) -> Job:
        return random.choices(self._drawn, [job.weight for job in self._drawn])[0]

    def reset(self) -> None:
        shutil.rmtree(self.work)
        shutil.copytree(self._kept, self.work, dirs_exist_ok=True)

    @contextlib.contextmanager
    def without_output(self, job: Job, kind: str = "") -> Iterator[None]:
        """Remove a job's output for a case of this kind, and resets everything afterwards."""
        self.remove(job.output)
        try:
            yield
        except BaseException as error:
            error.add_note(f"{job.name}: {kind}")
            raise
        finally:
            self.reset()

    def restore(self, name: str) -> None:
        """Brings a file back to its content and time."""
        shutil.copy2(self._kept / name, self.work / name)

    def remove(self, output: str) -> None:
        for path in self.work.glob(f"*{output}*"):
            if path.name not in FILES:
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()

    def state(self, output: str) -> dict[str, Any]:
        """Return all files of an output and beside it, hidden ones too, without varying content."""
        found: dict[str, Any] = {}
        for path in self.work.rglob("*"):
            name = str(path.relative_to(self.work))
            is_ours = output in name.split("/")[0] and name not in FILES
            if is_ours and path.is_file() and not path.name.endswith(_VARYING_FILES):
                found[name] = _content(path)
        return found

    def is_complete(self, job: Job) -> bool:
        """Return whether all files of the output are as they should be; others may be there."""
        now, then = self.state(job.output), self._undisturbed[job.name]
        names = [name for name in then if "manifest.json" not in name]
        return all(now.get(name) == then[name] for name in names)

    def check_undisturbed(self, job: Job) -> None:
        now, then = self.state(job.output), self._undisturbed[job.name]
        different = [name for name in {*now, *then} if now.get(name) != then.get(name)]
        if different:
            names = sorted(different)
            shown = "".join(
                f"\n{now.get(name)!s:.3000}\n{then.get(name)!s:.3000}" for name in names
            )
            raise AssertionError(f"{job.name}: other files after the rerun: {names}{shown}")


@functools.cache
def _shared() -> Chain:
    """Return the chain of all campaigns of a process, whose server takes a minute to start."""
    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="faults-jobs-")))
    folder.chmod(0o755)  # some jobs run as another user
    return Chain(folder, stack.enter_context(JobForks(folder)))


def shared_chain(names: Iterable[str]) -> Chain:
    """Return the chain of this process, for these jobs."""
    chain = _shared()
    chain.provide(names)
    return chain


def _with_needs(names: Iterable[str]) -> list[str]:
    wanted = set(names)
    for name in reversed(JOBS):
        if name in wanted:
            wanted.update(JOBS[name].needs)
    return [name for name in JOBS if name in wanted]


def _content(path: Path) -> Any:
    content = path.read_bytes()
    with contextlib.suppress(ValueError):  # power was lost while it was written
        if path.name.endswith(".json"):
            return _constant(json.loads(content))
        if path.name == "metrics.jsonl":
            return [_constant(json.loads(line)) for line in content.splitlines()]
    return content


def _constant(value: Any) -> Any:
    if isinstance(value, dict):
        if str(value.get("path")).endswith(("metrics.jsonl", "state.json")):
            return value["path"]  # a manifest's, with its hash
        return {key: _constant(each) for key, each in value.items() if key not in _VARYING_KEYS}
    return [_constant(each) for each in value] if isinstance(value, list) else value
