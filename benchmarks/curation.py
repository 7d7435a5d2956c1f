"""Speed of curation, and whether its files are the same however a job runs.

    python benchmarks/curation.py 'corpus/*.txt.gz' --vocab vocab.txt [--rounds 3]
    python benchmarks/curation.py 'corpus/*.txt.gz' --vocab vocab.txt --bytes \
        --exclude dev.tsv [--kills 3] [--options "--runner=prism"]

The first prints megabytes of text per CPU second: of reading and cleaning with each part of
curation by itself, of whole jobs, and of each single rule on clean text. The second compares the
SHA-256 of all files of 1, 2 and 4 workers, of the inputs in another order, and of a job that is
killed (SIGKILL) several times and started again; with `--options`, also of another runner.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import os
import random
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bert_tf.base.console import Console
from bert_tf.base.processor import describe_processor
from bert_tf.config.section import build_section
from bert_tf.config.sections import PreprocessConfig, RunnerConfig
from pipeline.beam.files import match_files
from pipeline.corpus.curation.registry import rules_of
from pipeline.corpus.documents import DocumentRules, clean_raw, make_block
from pipeline.corpus.readers.formats import look_at_text, read_file
from pipeline.corpus.report import facts_of_block
from pipeline.jobs import pretraining_examples
from pipeline.outputs.job_spec import RunOptions
from pipeline.report.corpus.sample import read_sample

ALL: dict[str, Any] = {
    "curation": ["gopher,c4,fineweb"],
    "languages": ["en"],
    "duplicates": "near",
    "personal_data": ["all"],
}
PARTS: dict[str, dict[str, Any]] = {
    "plain": {},
    **{name: {"curation": [name]} for name in ("gopher_repetition", "gopher_quality")},
    **{name: {"curation": [name]} for name in ("c4", "fineweb")},
    "languages": {"languages": ["en"]},
    "personal data": {"personal_data": ["all"]},
    "near duplicates": {"duplicates": "near"},
    "all": ALL,
}
_BLOCK_BYTES = 2_000_000
NOTES = ("manifest.json", "config.yaml", "job.log")


def config_of(inputs: list[str], vocab: str, output: Path, **values: Any) -> PreprocessConfig:
    values = {"input": inputs, "vocab": vocab, "output": str(output), **values}
    return build_section(PreprocessConfig, values)


def time_job(inputs: list[str], vocab: str, folder: Path, **values: Any) -> float:
    """CPU seconds of a job in this process, all of its threads included."""
    output = folder / "data"
    shutil.rmtree(output, ignore_errors=True)
    config = config_of(inputs, vocab, output, **values)
    begin = time.process_time()
    pretraining_examples.run(config, RunnerConfig(workers=1), RunOptions(console=Console()))
    return time.process_time() - begin


def time_rules(inputs: list[str], vocab: str, folder: Path) -> Iterator[tuple[str, float]]:
    """Return the megabytes per CPU second of each single rule, measuring included."""
    config = config_of(inputs, vocab, folder, curation=ALL["curation"], languages=ALL["languages"])
    rules = DocumentRules.from_config(config)
    sample = read_sample(config, match_files(config.input))
    lines = [clean_raw(raw, rules) for raw in sample.raw]
    megabytes = sum(len(each.clean.data) for each in lines) / 1e6
    for rule in rules_of(config):
        rule.measure(lines[0].measured[0])  # compiles
        seconds = 0.0
        for each in lines:
            text, _ = dataclasses.replace(each).measured  # anew
            begin = time.process_time()
            rule.measure(text)
            seconds += time.process_time() - begin
        yield rule.name, megabytes / max(seconds, 1e-9)


def time_reading(inputs: list[str], vocab: str, folder: Path, **values: Any) -> tuple[float, float]:
    """CPU seconds from files to blocks of curated documents, and megabytes of text."""
    config = config_of(inputs, vocab, folder, **values)
    rules = DocumentRules.from_config(config)
    files = match_files(config.input)
    layouts = look_at_text(config, files).layouts
    size, begin = 0, time.process_time()
    for file in files:
        for raw in read_file(file.path, config, layouts, _BLOCK_BYTES):
            facts_of_block(make_block(raw, rules))
            size += int((raw.texts.stops - raw.texts.starts).sum())
    return time.process_time() - begin, size / 1e6


def print_speeds(options: argparse.Namespace, folder: Path) -> None:
    inputs, vocab = options.inputs, options.vocab
    print(f"processor: {describe_processor()}")
    medians: dict[str, float] = {}
    for name, values in PARTS.items():
        if name == "near duplicates":  # of blocks, after reading
            continue
        time_reading(inputs[:1], vocab, folder, **values)  # compiles
        found = [time_reading(inputs, vocab, folder, **values) for _ in range(options.rounds)]
        medians[name] = statistics.median(seconds for seconds, _ in found)
        megabytes = found[0][1]
        more = medians[name] - medians["plain"]
        print(f"{name:<20} {megabytes / medians[name]:7.1f} MB/s read  {more:+6.2f} s", flush=True)
    time_job(inputs[-1:], vocab, folder, **ALL)  # compiles
    for name in ("plain", "near duplicates", "all"):
        found_jobs = [time_job(inputs, vocab, folder, **PARTS[name]) for _ in range(options.jobs)]
        seconds = statistics.median(found_jobs)
        print(
            f"{name:<20} {megabytes / seconds:7.2f} MB/s of preprocess  {seconds:6.1f} s",
            flush=True,
        )
    for name, speed in time_rules(inputs, vocab, folder):
        print(f"{name:<45} {speed:8.1f} MB/s", flush=True)


def command(
    options: argparse.Namespace, inputs: list[str], output: Path, workers: int
) -> list[str]:
    settings = [f"--set=preprocess.{key}={value}".replace("'", "") for key, value in ALL.items()]
    start = "from pipeline.cli.main import main; main()"
    files = [f"--input={path}" for path in inputs]
    job = ["preprocess", *files, f"--vocab={options.vocab}", f"--output={output}"]
    settings += [f"--exclude={path}" for path in options.exclude]
    return [sys.executable, "-c", start, *job, *settings, f"--set=runner.workers={workers}"]


def sha256_of(folder: Path) -> str:
    """Of the names and bytes of all files but notes with times and paths."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.name not in NOTES:
            digest.update(f"{path.name}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def print_bytes(options: argparse.Namespace, folder: Path) -> None:
    inputs = [file.path for file in match_files(tuple(options.inputs))]
    for workers in (1, 2, 4):
        output = folder / f"workers-{workers}"
        subprocess.run(command(options, inputs, output, workers), check=True, capture_output=True)
        print(f"{workers} workers: {sha256_of(output)}")
    random.Random(0).shuffle(inputs)
    output = folder / "shuffled"
    subprocess.run(command(options, inputs, output, 1), check=True, capture_output=True)
    print(f"other order: {sha256_of(output)}")
    if options.options:
        output = folder / "runner"
        other = [*command(options, inputs, output, 1), *shlex.split(options.options)]
        subprocess.run(other, check=True, capture_output=True)
        print(f"{options.options}: {sha256_of(output)}")
    output, begin, killed = folder / "killed", time.monotonic(), 0
    subprocess.run(command(options, inputs, output, 1), check=True, capture_output=True)
    whole = time.monotonic() - begin
    shutil.rmtree(output)
    for kill in range(1, options.kills + 1):
        job = subprocess.Popen(
            command(options, inputs, output, 1), stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            job.wait(whole * kill / (options.kills + 1))
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
            killed += 1
    subprocess.run(command(options, inputs, output, 1), check=True, capture_output=True)
    print(f"killed {killed} times: {sha256_of(output)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("inputs", nargs="+")
    parser.add_argument("--vocab", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--bytes", action="store_true")
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--exclude", action="append", default=[])
    parser.add_argument("--options", default="", help="of the command, that choose a runner")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        (print_bytes if options.bytes else print_speeds)(options, Path(folder))


if __name__ == "__main__":
    main()
