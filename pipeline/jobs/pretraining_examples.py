"""`preprocess`: makes shards of pretraining records from a corpus and a vocabulary."""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa

from bert_tf.base.console import Console
from bert_tf.base.errors import BertPipelineError, GraphWritten, InputError, RunnerFailed
from bert_tf.base.files import remove, write_text_atomically
from bert_tf.base.json_files import read_if_sound, write_sealed
from bert_tf.base.wording import quantity
from bert_tf.config.sections.data import PreprocessConfig
from bert_tf.config.sections.tables import RunnerConfig
from bert_tf.data.records.dataset_info import TOKEN_COUNTS_FILE
from bert_tf.data.text.casing import lowercase_of
from bert_tf.data.text.host_wordpiece import HostTokenizer
from bert_tf.data.text.vocab_file import read_vocab_for_masking, vocab_fingerprint
from pipeline.beam.blobs import BlobStore, count_finished_work, remove_unfinished_work
from pipeline.beam.files import FileInfo, match_files
from pipeline.beam.runner import run_pipeline
from pipeline.beam.storage import use_storage_options
from pipeline.beam.stored_path import path_of
from pipeline.corpus.curation.excluded_files import match_excluded, store_excluded
from pipeline.corpus.curation.exclusion import Exclusion
from pipeline.corpus.duplicates.drop import DropDuplicates
from pipeline.corpus.duplicates.elsewhere import (
    OtherCorpus,
    corpus_inputs,
    match_other,
    other_lines,
)
from pipeline.corpus.duplicates.signature_files import SIGNATURES_FILE, write_signatures
from pipeline.corpus.evidence import ranked
from pipeline.corpus.read import BLOCK, ReadDocuments, bytes_of_block
from pipeline.corpus.report import (
    CorpusReport,
    ReportCorpus,
    list_meanings,
    read_report,
    read_samples,
    read_tallies,
    report_corpus_lines,
    write_lists,
)
from pipeline.examples.plan import plan_examples
from pipeline.examples.steps import POOL
from pipeline.examples.transforms import (
    ExamplesJob,
    WriteExamples,
    examples_line,
    read_example_counts,
    read_shard_hashes,
)
from pipeline.outputs.job import JobRecord, run_job
from pipeline.outputs.job_spec import JobSpec, RunOptions
from pipeline.outputs.manifest import JOB_FILES, check_files, package_versions, rejects_path
from pipeline.outputs.rejects import corpus_rows, report_rejects
from pipeline.report.corpus.data_card import DATA_CARD, data_card
from pipeline.report.corpus.evidence import LENGTHS, rules_in_manifest, tallies_in_manifest
from pipeline.report.corpus.health import MOST_UNKNOWN, examine, refuse_unknown
from pipeline.report.corpus.language import understand_corpus
from pipeline.report.corpus.sample import read_sample
from pipeline.vocabulary.casing import with_casing

# Meaning of label 1 of a pair; pair_task none has no labels.
LABEL_NAMES = {"nsp": "random_next", "sop": "swapped"}
# A part of a corpus that is another language's may come first.
_MOST_UNKNOWN_OF_SAMPLE = 0.8
_SAMPLE_BYTES = 1_000_000
_SAMPLE_SENTENCES = 5_000
WORK_FOLDER = ".unfinished"
_WORK_IDENTITY = "identity.json"


def run(config: PreprocessConfig, runner: RunnerConfig, options: RunOptions) -> dict[str, Any]:
    """Make pretraining records; return the manifest.

    Args:
        config: of `preprocess`.
        runner: where the pipeline runs.
        options: how the command runs.

    Raises:
        UsageError: an input or the vocabulary is bad.
        InputError: no example can be made.
    """
    use_storage_options(runner.options, runner.runner)
    check_files(config.vocab)
    vocab = read_vocab_for_masking(path_of(config.vocab))
    config, note = with_casing(config, config.vocab, vocab)
    files = match_files(config.input, output=config.output, console=options.console)
    excluded = match_excluded(config, files)
    other = match_other(config, files)

    def body(record: JobRecord) -> None:
        if note:
            options.console.warn(note)
        _make_records(config, runner, files, excluded, other, vocab, record)

    spec = JobSpec(
        config=config,
        inputs={
            **corpus_inputs(files, excluded, other),
            "vocab": [config.vocab],
        },
        can_resume=True,
        temporary=path_of(config.output) / WORK_FOLDER,
        may_be_remote=True,
    )
    return run_job(spec, options, body)


def _make_records(
    config: PreprocessConfig,
    runner: RunnerConfig,
    files: list[FileInfo],
    excluded: list[FileInfo],
    other: OtherCorpus,
    vocab: list[str],
    record: JobRecord,
) -> None:
    console = record.console
    corpus = understand_corpus(config, files)
    console.info(corpus.line)
    console.info(*corpus.first)
    record.warn(corpus.warnings)
    record.extra["corpus"] = corpus.facts
    output = path_of(config.output).absolute()  # workers may run in another folder
    plan = plan_examples(config, files)
    identity = {
        **record.identity,
        "block_bytes": bytes_of_block(config, files),
        "plan": {**dataclasses.asdict(plan), "buckets": plan.buckets},
        # Another release may make other blocks of the same text.
        "versions": package_versions(),
    }
    work = open_work_folder(output, identity, console)
    job = ExamplesJob(config, vocab, plan, BlobStore(str(work)), output=str(output), work=str(work))
    record.extra["found_finished"] = _report_found(job, console)
    with keeping_finished_work(work, console):
        with record.stage("sample"):
            _check_sample(config, files, corpus.layouts, vocab)
            exclusion, warnings = store_excluded(config, excluded, job.store)
        record.warn(warnings)
        with record.stage("examples"):
            source = Source(files, corpus.layouts, exclusion, other)
            _make_shards(job, runner, source, record)
        write_lists(job.work, output)
        if config.write_signatures:
            write_signatures(job.work, output / SIGNATURES_FILE)
        if other.paths:
            line, warnings = other_lines(other, job.work)
            console.info(line)
            record.warn(warnings)
        record.sha256 = read_shard_hashes(job.work)
        report = read_report(job.work)
        made = read_example_counts(job.work)
        tallies = read_tallies(job.work)
        record.counts = _collect_counts(report, made, config)
        record.extra["rules"] = rules_in_manifest(config, report, read_samples(job.work), tallies)
        lengths = sorted(_by_reason(made, LENGTHS).items(), key=lambda each: int(each[0]))
        record.extra["corpus"] |= {LENGTHS: dict(lengths), **tallies_in_manifest(tallies)}
        console.info(*report_corpus_lines(report, config.duplicates))
        rows = corpus_rows(record.counts)
        report_rejects(console, rejects_path(output), rows, config.input)
        _check_usable(config, record.counts)
    _finish(job, record)


def open_work_folder(output: Path, identity: dict[str, Any], console: Console) -> Path:
    """Make the folder of unfinished work, or reuse that of an interrupted run of the same work.

    Removes all else in an unfinished output.

    Args:
        output: of the job.
        identity: all that results depend on, ready for JSON.
    """
    work = output / WORK_FOLDER
    # In the form in which it is read back: tuples become lists.
    identity = json.loads(json.dumps(identity))
    is_new = not work.exists()
    if read_if_sound(work / _WORK_IDENTITY) == identity:
        remove_unfinished_work(work)
        return work
    if not is_new:
        console.info(
            f"{output}: nothing of the unfinished run can be reused; starting from scratch"
        )
    for path in output.iterdir():
        if path.name not in JOB_FILES:
            remove(path)
    work.mkdir()
    write_sealed(work / _WORK_IDENTITY, identity)
    return work


@contextmanager
def keeping_finished_work(work: Path, console: Console) -> Iterator[None]:
    """Remove the folder if the job fails on its input, since no run could use it."""
    try:
        yield
    except BaseException as error:
        # A failed machine, or a stop, says nothing about the input.
        if isinstance(error, RunnerFailed | GraphWritten) or not isinstance(
            error, BertPipelineError
        ):
            console.info(f"finished work is kept in {work}; the same command resumes from it")
        else:
            with suppress(OSError):
                remove(work)
        raise


def _report_found(job: ExamplesJob, console: Console) -> dict[str, int]:
    """Count the finished work of an interrupted run, and tell the user."""
    shards = [name for split in ("train", "eval") for name in job.shard_names(split)]
    there = {path.name for path in path_of(job.output).iterdir()}
    done = {
        "blocks": count_finished_work(path_of(job.work), BLOCK),
        "pools": count_finished_work(path_of(job.work), POOL),
        "shards": sum(name in there for name in shards),
    }
    if any(done.values()):
        tasks = quantity(job.plan.pools * job.plan.parts, "task")
        console.info(
            f"already finished: {quantity(done['blocks'], 'block')} of text, {done['pools']:,} "
            f"of at most {tasks} on pools, {done['shards']:,} of {quantity(len(shards), 'shard')}"
        )
    return done


@dataclasses.dataclass(frozen=True)
class Source:
    """Inputs of the pipeline.

    Attributes:
        files: of the corpus.
        layouts: of those that are plain text.
        exclusion: texts to leave out.
        other: the corpus to compare with.
    """

    files: list[FileInfo]
    layouts: Mapping[str, str]
    exclusion: Exclusion | None
    other: OtherCorpus


def _make_shards(job: ExamplesJob, runner: RunnerConfig, source: Source, record: JobRecord) -> None:
    config = job.config

    def build(pipeline: beam.Pipeline) -> None:
        drop = DropDuplicates(config, job.store, job.work, source.other)
        # Finding duplicates takes all text again.
        store = None if drop.needs_text else job.store
        read = ReadDocuments(config, source.files, source.layouts, source.exclusion, store)
        blocks = pipeline | "ReadDocuments" >> read
        blocks = blocks | "DropDuplicates" >> drop
        facts = blocks | "WriteExamples" >> WriteExamples(job)
        _ = facts | "ReportCorpus" >> ReportCorpus(job.work)

    run_pipeline(
        runner,
        build,
        console=record.console,
        input_bytes=sum(file.bytes for file in source.files) + source.other.bytes,
        progress=examples_line(
            earlier=record.extra["found_finished"]["shards"],
            shards=job.plan.train_shards + job.plan.eval_shards,
        ),
    )


def _check_sample(
    config: PreprocessConfig, files: list[FileInfo], layouts: Mapping[str, str], vocab: list[str]
) -> None:
    """Reject a vocabulary for another language before the whole corpus is read."""
    sample = read_sample(config, files, most_bytes=_SAMPLE_BYTES, layouts=layouts)
    texts = pa.chunked_array([block.sentences for block in sample.blocks], pa.string())
    # A sample may be from an odd corner of the corpus, so its limit is more generous.
    is_whole = sample.is_whole and len(texts) <= _SAMPLE_SENTENCES
    tokenizer = HostTokenizer(vocab, lowercase=lowercase_of(config.lowercase, config.keep_accents))
    ids = tokenizer.tokenize_texts(texts.slice(0, _SAMPLE_SENTENCES).to_pylist()).ids
    unknown = int((ids == tokenizer.unk_id).sum())
    limit = MOST_UNKNOWN if is_whole else _MOST_UNKNOWN_OF_SAMPLE
    refuse_unknown(unknown, len(ids), config, limit=limit)


def _collect_counts(
    report: CorpusReport, made: Counter[str], config: PreprocessConfig
) -> dict[str, Any]:
    dropped = report.dropped + _by_reason(made, "dropped")
    documents = {split: made[f"documents/{split}"] for split in ("train", "eval")}
    label = LABEL_NAMES.get(config.pair_task)
    return {
        "documents": sum(documents.values()),
        "documents_train": documents["train"],
        "documents_eval": documents["eval"],
        "documents_of_one_sentence": made["documents_of_one_sentence"],
        "sentences": report.sentences,
        "sentences_cut": made["sentences_cut"],
        "tokens": made["tokens"],
        "tokens_unknown": made["tokens_unknown"],
        "tokens_ideographic": made["tokens_ideographic"],
        "tokens_reached": made["tokens_reached"],
        "examples": {split: made[f"examples/{split}"] for split in ("train", "eval")},
        "row_tokens": made["row_tokens"],
        "masked": made["masked"],
        "truncations": made["truncations"],
        "chunks_left_out": ranked(_by_reason(made, "chunks_left_out")),
        **({label: made["labeled"]} if label else {}),
        "copies": report.copies,
        "dropped": ranked(dropped),
        "dropped_lines": ranked(report.dropped_lines),
        "replaced": ranked(report.replaced),
        "rejected": ranked(report.rejected),
        **({"excluded": dict(sorted(report.excluded.items()))} if report.excluded else {}),
    }


def _by_reason(made: Counter[str], kind: str) -> Counter[str]:
    """Return the nonzero counts named `kind/reason`, by reason."""
    prefix = f"{kind}/"
    return Counter(
        {name.removeprefix(prefix): n for name, n in made.items() if n and name.startswith(prefix)}
    )


def _check_usable(config: PreprocessConfig, counts: dict[str, Any]) -> None:
    """Raise InputError if no training example was made, or most tokens are unknown."""
    inputs = ", ".join(config.input)
    if not counts["documents"]:
        reasons = [
            f"{n} {reason}"
            for kind in ("rejected", "dropped")
            for reason, n in counts[kind].items()
        ]
        left_out = f" (left out: {', '.join(reasons)})" if reasons else ""
        raise InputError(
            f"{inputs}: no usable document{left_out}; expected text, see --help-all for formats"
        )
    if not counts["examples"]["train"]:
        raise InputError(
            f"{inputs}: no training example could be made of "
            f"{quantity(counts['documents'], 'document')}; "
            "examples need a document of two sentences or more, or two different documents"
        )
    refuse_unknown(counts["tokens_unknown"], counts["tokens"], config, limit=MOST_UNKNOWN)


def _finish(job: ExamplesJob, record: JobRecord) -> None:
    config = job.config
    vocab = job.vocab
    console = record.console
    counts = record.counts
    output = path_of(config.output)
    shards = {split: job.shard_names(split) for split in ("train", "eval")}
    if not counts["examples"]["eval"]:
        for name in shards.pop("eval"):
            (output / name).unlink()
        shards["eval"] = []
        if config.eval_fraction > 0:
            console.warn(
                "no document was held out for evaluation; raise eval_fraction (now "
                f"{config.eval_fraction}) if the corpus is small"
            )
    write_text_atomically(output / "vocab.txt", "".join(f"{piece}\n" for piece in vocab))
    record.extra["records"] = {
        "max_seq_length": config.max_seq_length,
        "max_predictions_per_seq": config.max_predictions_per_seq,
        "feature_names": config.feature_names,
        "compression": config.compression,
        "vocab_size": len(vocab),
        "vocab_sha256": vocab_fingerprint(vocab),
        "lowercase": config.lowercase,
        "keep_accents": config.keep_accents,
        "masking": config.masking,
        "pair_task": config.pair_task,
        "train_shards": shards["train"],
        "eval_shards": shards["eval"],
    }
    record.extra["pools"] = job.plan.pools
    examples, seconds = counts["examples"], record.timings["examples"]
    total = examples["train"] + examples["eval"]
    health = examine(counts, config)
    record.metrics = {**health.figures}
    # The time of a resumed run is not that of all its examples.
    if not any(record.extra["found_finished"].values()):
        record.metrics["examples_per_second"] = round(total / seconds, 1)
    console.info(
        f"{quantity(counts['documents'], 'document')}, {quantity(counts['tokens'], 'token')} -> "
        f"{examples['train']:,} training and {quantity(examples['eval'], 'evaluation example')} "
        f"in {seconds:.1f} s"
    )
    record.console.info(health.line)
    record.warn(health.warnings)
    record.made = [
        (_shown_shards(output, names), f"{kind} records")
        for names, kind in ((shards["train"], "training"), (shards["eval"], "evaluation"))
        if names
    ]
    write_text_atomically(output / DATA_CARD, data_card(record.manifest()))
    _list_files(record, output)
    record.suggest("train", data=config.output, output="RUN", size="tiny")


def _list_files(record: JobRecord, output: Path) -> None:
    """List the files beside the records, as far as there are any."""
    rejected = quantity(sum(record.counts["rejected"].values()), "rejected line")
    record.made += [
        (str(path), meaning)
        for path, meaning in (
            (output / "vocab.txt", "vocabulary of the records"),
            (output / TOKEN_COUNTS_FILE, "token frequencies in the corpus"),
            (output / SIGNATURES_FILE, "signatures, for --duplicates-against of later runs"),
            *list_meanings(
                output, duplicates="dropped duplicates", rejects=f"{rejected}, with reasons"
            ),
            (output / DATA_CARD, "sources, rules and counts, for the Hub"),
        )
        if path.exists()
    ]


def _shown_shards(output: Path, names: list[str]) -> str:
    """Return the path of the only shard, or a glob for all, as Beam and tf.data take it."""
    return str(output / (names[0] if len(names) == 1 else re.sub(r"-\d+-", "-*-", names[0])))
