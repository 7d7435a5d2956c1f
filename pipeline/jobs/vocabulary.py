"""`vocab`: learns a vocabulary from the words of a corpus, counted with Beam, and measures it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np

from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.files import remove, write_text_atomically
from bert_tf.base.wording import quantity, shown_size
from bert_tf.config.sections import RunnerConfig, VocabConfig
from bert_tf.config.sections.data import CorpusSection
from bert_tf.data.text.casing import lowercase_of
from bert_tf.data.text.vocab_file import read_vocab
from pipeline.beam.blobs import BlobStore
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
from pipeline.corpus.read import ReadDocuments
from pipeline.corpus.report import (
    DUPLICATES,
    CorpusReport,
    ReportCorpus,
    facts_of_block,
    list_meanings,
    list_reasons,
    move_lists,
    read_report,
    report_corpus_lines,
    write_lists,
)
from pipeline.outputs.job import JobRecord, run_job
from pipeline.outputs.job_spec import JobSpec, RunOptions
from pipeline.outputs.manifest import check_files, rejects_path
from pipeline.outputs.rejects import corpus_rows, report_rejects
from pipeline.proposal.config_text import option_words
from pipeline.report.corpus.health import examine
from pipeline.report.corpus.language import understand_corpus
from pipeline.vocabulary.casing import with_casing
from pipeline.vocabulary.counting import CountWords, WordCounts, read_counts
from pipeline.vocabulary.learner import SPECIALS, LearnedVocabulary, learn_vocabulary
from pipeline.vocabulary.quality import measure_fit
from pipeline.vocabulary.savings import ExtendedVocabulary, entries_that_pay

_SHOWN_ENTRIES = 10  # that save most
_SHARES = (0.5, 0.9)  # of all tokens that are saved


def run(config: VocabConfig, runner: RunnerConfig, options: RunOptions) -> dict[str, Any]:
    """Make the vocabulary file, and return its manifest.

    Args:
        config: of `vocab`.
        runner: where the pipeline runs.
        options: how the command runs.

    Raises:
        UsageError: files, formats, columns or outputs are faulty.
        InputError: there is no text.
    """
    use_storage_options(runner.options, runner.runner)
    files = match_files(config.input, output=config.output, console=options.console)
    excluded = match_excluded(config, files)
    other = match_other(config, files)
    base = _read_base(config)
    note = ""
    if config.extend is not None:
        config, note = with_casing(config, config.extend, base)

    path = path_of(config.output)
    work = path.parent.absolute() / f".{path.name}.work"  # workers may run in another folder

    def body(record: JobRecord) -> None:
        if note:
            options.console.warn(note)
        # A stopped run leaves nothing to resume, so begin with an empty folder.
        remove(work)
        work.mkdir(parents=True)
        try:
            exclusion, warnings = store_excluded(config, excluded, BlobStore(str(work)))
            record.warn(warnings)
            with record.stage("count"):
                _count_words(config, runner, files, exclusion, other, str(work), record)
            _learn(config, base, work, record)
        finally:
            with suppress(OSError):
                remove(work)
        record.next_command = _next_command(config)

    spec = JobSpec(
        config=config,
        inputs={
            **corpus_inputs(files, excluded, other),
            "extend": [config.extend] if config.extend else [],
        },
        temporary=work,
        may_be_remote=True,
    )
    return run_job(spec, options, body)


def _read_base(config: VocabConfig) -> list[str]:
    if config.extend is None:
        return list(SPECIALS)
    # A vocabulary that was edited after its job has other ids than its manifest says.
    check_files(config.extend)
    base = read_vocab(path_of(config.extend))
    if len(base) >= config.vocab_size:
        raise UsageError(
            f"{config.extend} has {quantity(len(base), 'entry')} already; give a --vocab-size (of "
            f"the extended vocabulary) larger than {config.vocab_size:,}"
        )
    return base


def _learn(config: VocabConfig, base: list[str], work: Path, record: JobRecord) -> None:
    report = read_report(str(work))
    counted = read_counts(str(work))
    # Lists of rejects and duplicates stay in the work folder until the vocabulary is learned; then
    # they move next to it.
    duplicates = write_lists(str(work), work)[DUPLICATES]
    _report_counts(config, report, counted, rejects_path(work), record)
    if report.documents == 0:
        raise InputError(
            f"{', '.join(config.input)}: no text found (rejected: "
            f"{list_reasons(report.rejected)}; dropped: {list_reasons(report.dropped)})"
        )
    with record.stage("learn"):
        learned = learn_vocabulary(
            counted.words,
            counted.counts,
            vocab_size=config.vocab_size,
            min_frequency=config.min_frequency,
            limit_alphabet=config.limit_alphabet,
            extra_pieces=config.extra_pieces,
            base=base,
        )
    _report_shortcomings(config, learned, record)
    if config.extend is not None:
        learned = _extended(config, learned, counted, len(base), record)
    with record.stage("measure"):
        _measure(learned, counted, record)
    health = examine({**record.counts, **record.metrics}, config)
    record.metrics.update(health.figures)
    record.console.info(health.line)
    record.warn(health.warnings)
    output = path_of(config.output)
    # The vocabulary comes last: once it is there, all that belongs to it is, too.
    move_lists(work, output)
    write_text_atomically(output, "".join(f"{piece}\n" for piece in learned.pieces))
    lists = list_meanings(
        output,
        duplicates=quantity(duplicates, "duplicate document") + " left out",
        rejects=f"rejected: {list_reasons(report.rejected)}",
    )
    record.made = [
        (config.output, f"{quantity(len(learned.pieces), 'entry')}, one per line"),
        *((str(path), meaning) for path, meaning in lists if path.exists()),
    ]
    record.counts["entries"] = len(learned.pieces)
    if config.extend is not None:
        record.counts["entries_kept"] = len(base)
    record.counts["alphabet"] = len(learned.alphabet)


def _count_words(
    config: VocabConfig,
    runner: RunnerConfig,
    files: list[FileInfo],
    exclusion: Exclusion | None,
    other: OtherCorpus,
    folder: str,
    record: JobRecord,
) -> None:
    input_bytes = sum(file.bytes for file in files)
    corpus = understand_corpus(config, files)
    record.console.info(f"{corpus.line}; {shown_size(input_bytes)}")
    record.console.info(*corpus.first)
    record.warn(corpus.warnings)
    record.extra["corpus"] = corpus.facts

    def build(pipeline: beam.Pipeline) -> None:
        blocks = pipeline | ReadDocuments(config, files, corpus.layouts, exclusion)
        blocks = blocks | DropDuplicates(config, BlobStore(folder), folder, other)
        _ = blocks | beam.Map(facts_of_block) | ReportCorpus(folder)
        _ = blocks | CountWords(
            folder,
            lowercase=lowercase_of(config.lowercase, config.keep_accents),
            max_word_length=config.max_word_length,
            held_out_fraction=config.held_out_fraction,
        )

    input_bytes += other.bytes
    run_pipeline(runner, build, console=record.console, input_bytes=input_bytes)
    if other.paths:
        line, warnings = other_lines(other, folder)
        record.console.info(line)
        record.warn(warnings)


def _report_counts(
    config: VocabConfig,
    report: CorpusReport,
    counted: WordCounts,
    rejects_file: Path,
    record: JobRecord,
) -> None:
    words = int(counted.counts.sum())
    held_out = int(counted.held_out_counts.sum())
    record.counts.update(
        report.counts(),
        words=words + held_out + counted.too_long,
        words_learned_from=words,
        words_held_out=held_out,
        words_too_long=counted.too_long,
        distinct_words=len(counted.words),
    )
    record.console.info(
        f"counted {quantity(words + held_out, 'word')} of {quantity(report.documents, 'document')} "
        f"({len(counted.words):,} distinct)"
    )
    record.console.info(*report_corpus_lines(report, config.duplicates))
    rows = corpus_rows(record.counts)
    report_rejects(record.console, rejects_file, rows, config.input)


def _report_shortcomings(
    config: VocabConfig, learned: LearnedVocabulary, record: JobRecord
) -> None:
    if learned.alphabet_left_out:
        record.console.info(
            f"{quantity(learned.alphabet_left_out, 'rare character')} left out of the alphabet of "
            f"{len(learned.alphabet):,}; words with such a character become [UNK] "
            f"(vocab.limit_alphabet={config.limit_alphabet}, --vocab-size {config.vocab_size})"
        )
    if len(learned.pieces) < config.vocab_size:
        record.console.warn(
            f"the vocabulary has {quantity(len(learned.pieces), 'entry')}, not "
            f"{config.vocab_size:,}: no other pair of pieces occurs "
            f"{quantity(config.min_frequency, 'time')}; give more text, a smaller --vocab-size or "
            "a smaller --min-frequency"
        )


def _extended(
    config: VocabConfig,
    learned: LearnedVocabulary,
    counted: WordCounts,
    num_base: int,
    record: JobRecord,
) -> LearnedVocabulary:
    """Leave out new entries that save too little; say which of them pay."""
    kept = entries_that_pay(
        learned.pieces,
        counted.words,
        counted.counts,
        num_base=num_base,
        min_saving=config.min_saving,
    )
    saved = kept.tokens_before - kept.tokens
    record.console.info(
        f"{quantity(len(kept.savings), 'new entry')} save {saved:,} of {kept.tokens_before:,} "
        f"tokens of the corpus ({saved / max(kept.tokens_before, 1):.1%})",
        *_saving_lines(kept),
    )
    if kept.left_out:
        record.console.info(
            f"{quantity(kept.left_out, 'entry')} left out, which save fewer than "
            f"{config.min_saving:,} tokens each (--min-saving)"
        )
    record.metrics |= {"tokens_before": kept.tokens_before, "tokens_saved": saved}
    record.counts["entries_left_out"] = kept.left_out
    return dataclasses.replace(learned, pieces=kept.pieces)


def _saving_lines(extended: ExtendedVocabulary) -> Iterator[str]:
    """Yield the entries that save most, and how many make up most of the saving."""
    best = extended.savings[:_SHOWN_ENTRIES]
    if not best:
        return
    width = max(len("entry"), *(len(each.entry) for each in best))
    yield f"  {'entry':{width}}  {'uses':>9}  tokens before  {'saved':>9}"
    for each in best:
        yield (
            f"  {each.entry:{width}}  {each.uses:>9,}  {each.pieces_before:>13}  {each.tokens:>9,}"
        )
    tokens = np.array([each.tokens for each in extended.savings])
    if not tokens.any():
        return
    sums = np.cumsum(tokens)
    for share in _SHARES:
        number = int(np.searchsorted(sums, share * sums[-1])) + 1
        yield (
            f"  the first {number:,} of {len(tokens):,} save {share:.0%}; from there on each "
            f"saves at most {int(tokens[number - 1]):,} (--min-saving)"
        )


def _measure(learned: LearnedVocabulary, counted: WordCounts, record: JobRecord) -> None:
    """Measure the vocabulary on words of held-out documents and on those it is made from."""
    for name, words, counts in (
        ("held_out", counted.held_out_words, counted.held_out_counts),
        ("corpus", counted.words, counted.counts),
    ):
        fit = measure_fit(learned.pieces, words, counts)
        if fit is None:
            if name == "held_out":
                record.console.info("no document was held out to evaluate the vocabulary on")
            continue
        for key, value in dataclasses.asdict(fit).items():
            record.metrics[f"{name}_{key}"] = round(value, 6)
        if name == "held_out":
            record.console.info(
                f"on {quantity(fit.words, 'word')} of held-out documents: "
                f"{fit.pieces_per_word:.3f} tokens per word, "
                f"{fit.unknown_fraction:.2%} [UNK], {fit.whole_word_fraction:.1%} whole words"
            )


def _next_command(config: VocabConfig) -> list[str]:
    """Return a command line of `preprocess` that reads the corpus in the same way."""
    # Records have to be made from the text that the vocabulary was learned from.
    keys = [field.name for field in dataclasses.fields(CorpusSection)]
    # `block_megabytes` does not change the text, only how much of it is read at a time.
    read = ["input", *(key for key in keys if key not in ("input", "block_megabytes"))]
    command = ["bert-pipeline", "preprocess", *option_words(config, read, section="preprocess")]
    command += ["--vocab", config.output]
    if not config.lowercase:
        command.append("--cased")
    if config.keep_accents:
        command.append("--keep-accents")
    return [*command, "--output", str(path_of(config.output).with_name("pretraining-data"))]
