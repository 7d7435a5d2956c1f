"""The sections of a corpus, on the page of its records or on its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.base.wording import quantity, shown_size
from bert_tf.config.sections import PreprocessConfig
from bert_tf.config.sections.data import CorpusSection
from bert_tf.data.text.casing import Lowercase, lowercase_of
from bert_tf.data.text.vocab_file import read_vocab_for_masking
from bert_tf.tasks.base.histograms import doubling_histogram
from bert_tf.tasks.base.report_sections import (
    ExamplesSection,
    Section,
    TableSection,
)
from pipeline.beam.files import FileInfo, match_files
from pipeline.corpus.duplicates.folding import fold_block
from pipeline.outputs.inputs import recorded_input
from pipeline.report.corpus.left_out import LeftOut, left_out
from pipeline.report.corpus.sample import CorpusSample, read_sample
from pipeline.report.corpus.survey import (
    Copies,
    find_copies,
    lengths_of,
    letters_by_script,
    similar_documents,
    unknown_words,
)
from pipeline.report.document import sentence_case, tiles_html
from pipeline.vocabulary.casing import decide_lowercase

_MOST_LISTED = 20
_MOST_PAIRS = 5
_BINS = 14
_QUANTILES = ((0.05, "5%"), (0.5, "median"), (0.95, "95%"))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Corpus:
    """A corpus to look at.

    Attributes:
        config: of `vocab` or `preprocess`.
        files: that match its input.
        vocab: entries of a vocabulary, for its unknown words; None without one.
        lowercase: whether the vocabulary is lower-cased, with or without accents.
    """

    config: CorpusSection
    files: Sequence[FileInfo]
    vocab: Sequence[str] | None = None
    lowercase: Lowercase = True


def corpus_of_records(folder: Path, manifest: Mapping[str, Any]) -> Corpus | str:
    """Find the corpus behind records.

    Args:
        folder: of the records.
        manifest: its manifest, which names the input files.

    Returns:
        The corpus, or a sentence on the part of it that is missing or has changed.
    """
    files = []
    vocab = None
    excluded: list[str] = []
    against: list[str] = []
    for item in manifest.get("inputs", []):
        path = recorded_input(folder, item["path"])
        if path is None or (path.is_file() and path.stat().st_size != item["bytes"]):
            return f"{item['path']}: is missing or has changed, so the corpus is not shown."
        if item.get("key") == "vocab":
            vocab = read_vocab_for_masking(path)
        elif item.get("key") == "exclude":
            excluded.append(str(path))
        elif item.get("key") == "duplicates_against":
            against.append(str(path))
        else:
            files.append(FileInfo(str(path), item["bytes"]))
    # The manifest has the rules' samples of the whole corpus.
    names = {field.name for field in dataclasses.fields(PreprocessConfig)}
    if "rules" in manifest:
        names -= {"curation", "languages"}
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in manifest.get("config", {}).items()
        if name in names
    }
    values["input"] = tuple(file.path for file in files)
    values["exclude"] = tuple(excluded)
    values["duplicates_against"] = tuple(against)
    config = PreprocessConfig(**values)
    if not files:
        return "Its manifest names no files."
    return Corpus(
        config=config,
        files=files,
        vocab=vocab,
        lowercase=lowercase_of(config.lowercase, config.keep_accents),
    )


def corpus_at(
    config: PreprocessConfig, *, vocab: str | None = None, lowercase: Lowercase | None = None
) -> Corpus:
    """Find the files of a corpus.

    Args:
        config: of `preprocess`.
        vocab: path of a vocabulary, for its unknown words.
        lowercase: whether the vocabulary is lower-cased; None finds out by its manifest or entries.

    Returns:
        The corpus to look at.

    Raises:
        UsageError: there is no file, or the vocabulary is wrong.
    """
    files = match_files(config.input)
    if vocab is None:
        return Corpus(config=config, files=files)
    entries = read_vocab_for_masking(Path(vocab))
    decided, _ = decide_lowercase(lowercase, vocab, entries)
    return Corpus(config=config, files=files, vocab=entries, lowercase=decided)


def corpus_sections(corpus: Corpus, *, samples: int, is_alone: bool = False) -> list[Section | str]:
    """Render a sample of the text.

    Args:
        corpus: the files and the settings of reading.
        samples: examples of each rule.
        is_alone: whether the page has nothing else, so that it needs the sizes of the corpus.

    Returns:
        Scripts, lengths, copies, unknown words, and text left out by rules.

    Raises:
        UsageError: a file does not fit the config.
        InputError: a file is damaged.
    """
    sample = read_sample(corpus.config, corpus.files)
    blocks = [block for block in sample.blocks if block.num_documents]
    dropped = left_out(corpus.config, sample.raw, sample.blocks, most=max(samples, 1))
    sections: list[Section | str] = []
    if blocks:
        if is_alone:
            sections.append(_tiles(corpus, blocks))
        sections += _scripts(blocks, sample)
        sections += _lengths(blocks)
        sections += _copies(blocks, corpus.config)
        sections += _unknown(blocks, corpus)
    else:
        sections.append(
            TableSection(title="The corpus", columns=(), rows=[], note=f"{sample.note} No text.")
        )
    return [*sections, *_left_out(dropped, samples)]


def _tiles(corpus: Corpus, blocks: Sequence[Any]) -> str:
    """Render sizes at a glance; those of the text are of the sample."""
    lengths = lengths_of(blocks)
    return tiles_html(
        {
            "files": f"{len(corpus.files):,}",
            "size of the files": shown_size(sum(file.bytes for file in corpus.files)),
            "documents read": f"{len(lengths['words of a document']):,}",
            "sentences read": f"{len(lengths['words of a sentence']):,}",
            "words read": f"{int(lengths['words of a document'].sum()):,}",
        }
    )


def _scripts(blocks: Sequence[Any], sample: CorpusSample) -> Iterator[Section]:
    scripts = letters_by_script(blocks)
    letters = sum(scripts.values())
    yield TableSection(
        title="Scripts of the corpus",
        columns=(("script", "text"), ("letters", "count"), ("of all letters", "share")),
        rows=[[name, number, number / letters] for name, number in scripts.items()][:_MOST_LISTED],
        note=f"{sample.note} Scripts by the names of letters in Unicode; languages that share a "
        "script are not distinguished.",
    )


def _lengths(blocks: Sequence[Any]) -> Iterator[Section]:
    lengths = lengths_of(blocks)
    yield TableSection(
        title="Lengths",
        columns=(
            ("of", "text"), ("number", "count"), ("least", "count"),
            *((name, "count") for _, name in _QUANTILES),
            ("most", "count"), ("mean", "number"),
        ),
        rows=[
            [
                name, len(values), int(values.min()),
                *(int(np.quantile(values, at)) for at, _ in _QUANTILES),
                int(values.max()), float(values.mean()),
            ]
            for name, values in lengths.items()
        ],
        note="After cleaning and sentence splitting. Words are separated by spaces; for scripts "
        "without spaces, such as Chinese, see the characters.",
    )  # fmt: skip
    for noun in ("documents", "sentences"):
        name = f"words of a {noun.removesuffix('s')}"
        yield doubling_histogram(sentence_case(name), "words", noun, lengths[name], most=_BINS)


def _copies(blocks: Sequence[Any], config: CorpusSection) -> Iterator[Section]:
    folded = list(map(fold_block, blocks))
    documents = find_copies(
        blocks,
        [block.document_keys for block in folded],
        [block.document_offsets for block in blocks],
        most=_MOST_LISTED,
    )
    lines = find_copies(
        blocks,
        [block.line_keys for block in folded],
        [block.line_offsets for block in blocks],
        most=_MOST_LISTED,
    )
    hint = f"--duplicates {config.duplicates} is set"
    if config.duplicates == "keep":
        hint = "--duplicates exact drops these"
    yield _copies_section("Copies of documents", documents, "document", hint)
    threshold = config.near_duplicate_threshold
    near = similar_documents(blocks, folded, threshold=threshold, most=_MOST_PAIRS)
    yield TableSection(
        title="Near copies of documents",
        columns=(("similarity", "number"), ("one", "text"), ("another", "text")),
        rows=[list(pair) for pair in near.pairs],
        note=f"{near.similar:,} of {quantity(near.compared, 'distinct document')} are near "
        "duplicates of another one: the Jaccard similarity of their word 5-grams, estimated by "
        f"MinHash, is at least {threshold}. The most similar pairs:",
    )
    yield _copies_section(
        "Most repeated lines",
        lines,
        "line",
        "--set preprocess.duplicate_lines=drop keeps the first of each, which removes boilerplate "
        "of pages, but also refrains and headings",
    )


def _copies_section(title: str, copies: Copies, noun: str, hint: str) -> TableSection:
    fraction = copies.surplus / max(copies.number, 1)
    return TableSection(
        title=title,
        columns=(("times", "count"), (noun, "text"), ("first at", "text")),
        rows=[[times, text, place] for text, times, place in copies.most],
        note=f"{copies.surplus:,} of {quantity(copies.number, noun)} ({fraction:.2%}) repeat an "
        f"earlier one, ignoring case, spacing and punctuation ({hint}).",
    )


def _unknown(blocks: Sequence[Any], corpus: Corpus) -> Iterator[Section]:
    if corpus.vocab is None:
        return
    words = unknown_words(blocks, corpus.vocab, lowercase=corpus.lowercase, most=_MOST_LISTED)
    yield TableSection(
        title="Unknown words",
        columns=(("word", "text"), ("times", "count"), ("of all words", "share")),
        rows=[[word, count, count / max(words.words, 1)] for word, count in words.most],
        note=f"{words.fraction:.3%} of {quantity(words.words, 'word')} become [UNK] with this "
        f"vocabulary of {quantity(len(corpus.vocab), 'entry')}; {words.tokens_per_word:.3f} tokens "
        "per word.",
    )


def _left_out(rules: Sequence[LeftOut], samples: int) -> Iterator[Section]:
    yield TableSection(
        title="Text left out by rules",
        columns=(("rule", "text"), ("set by", "text"), ("is on", "text"), ("number", "count")),
        rows=[[rule.rule, rule.key, "yes" if rule.is_on else "no", rule.number] for rule in rules],
        note="Each rule is applied to the whole sample, even if it is off (a job counts a document "
        "under the first rule that drops it); copies are above.",
    )
    for rule in rules:
        if rule.examples and samples:
            note = "" if rule.is_on else "Off; it would leave out:"
            yield ExamplesSection(
                title=f"Left out: {rule.rule}", examples=rule.examples[:samples], note=note
            )
