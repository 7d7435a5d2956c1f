"""The page of a vocabulary: its scripts, and the pieces into which it cuts words."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bert_tf.base.errors import BertPipelineError
from bert_tf.data.text.casing import Lowercase, lowercase_of
from bert_tf.data.text.host_wordpiece import HostTokenizer
from bert_tf.data.text.vocab_file import SPECIAL_TOKENS, read_vocab
from bert_tf.tasks.base.histograms import histogram
from bert_tf.tasks.base.report_sections import Section, TableSection
from pipeline.report.document import tiles_html

_CONTINUES = "##"
_MOST_SCRIPTS = 12
_MOST_LANGUAGES = 20
_MOST_SPLIT = 20
_MOST_SHOWN = 12
_LANGUAGE_CHARACTERS = 4_000  # of a document, by which its language is guessed
_SAMPLE_BYTES = 8_000_000  # of text of the corpus
# A language gets a row if it has at least so many words; a mean of fewer says little.
_LEAST_WORDS = 200
_LONGEST_WORD = 100  # characters


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pieces:
    """Means over the running words of a language."""

    words: int
    per_word: float  # pieces
    whole: float  # fraction of words that are one entry
    unknown: float  # fraction of words that become [UNK]


def vocabulary_sections(path: Path, manifest: Mapping[str, Any]) -> list[Section | str]:
    """Lay out a vocabulary, and the pieces of the words of its corpus if that is still there.

    Args:
        path: of the vocabulary.
        manifest: of `vocab`.

    Raises:
        InputError: the file is no vocabulary.
    """
    entries = read_vocab(path)
    config = manifest.get("config", {})
    lowercase = lowercase_of(config.get("lowercase", True), config.get("keep_accents", False))
    content: list[Section | str] = [tiles_html(_tiles(entries, manifest))]
    content += _corpus_sections(path, manifest, entries, lowercase)
    content.append(_scripts(entries))
    bare = [entry.removeprefix(_CONTINUES) for entry in entries]
    content.append(
        histogram(
            "Length of the entries",
            "characters",
            "entries",
            np.array([len(entry) for entry in bare], np.int64),
            is_part=np.array([entry.startswith(_CONTINUES) for entry in entries]),
            part_noun="continue a word",
        )
    )
    return content


def _tiles(entries: Sequence[str], manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return counts of the entries, and measures on held-out words."""
    continued = sum(entry.startswith(_CONTINUES) for entry in entries)
    tiles = {"entries": f"{len(entries):,}", "continue a word": f"{continued:,}"}
    metrics = manifest.get("metrics", {})
    config = manifest.get("config", {})
    kind = "held_out" if metrics.get("held_out_words") else "corpus"
    words = "held-out words" if kind == "held_out" else "words of the corpus"
    for key, name, template in (
        ("pieces_per_word", "pieces a word", "{:.3f}"),
        ("whole_word_fraction", "one piece", "{:.1%}"),
        ("unknown_fraction", "[UNK]", "{:.3%}"),
    ):
        value = metrics.get(f"{kind}_{key}")
        if value is not None:
            tiles[f"{name}, {words}"] = template.format(value)
    if "lowercase" in config:
        tiles["case"] = "lower-cased" if config["lowercase"] else "kept"
    return tiles


def _scripts(entries: Sequence[str]) -> TableSection:
    """Tabulate entries by the script of most of their letters, with the longest of each."""
    from pipeline.report.corpus.scripts import OTHER, main_script

    entries_by_script: dict[str, list[str]] = {}
    for entry in entries:
        if entry in SPECIAL_TOKENS:
            continue
        script = main_script(entry.removeprefix(_CONTINUES))
        entries_by_script.setdefault(script, []).append(entry)
    order = sorted(entries_by_script, key=lambda script: -len(entries_by_script[script]))
    rows = []
    for script in order[:_MOST_SCRIPTS]:
        own = entries_by_script[script]
        longest = sorted(own, key=len, reverse=True)[:_MOST_SHOWN]
        name = "digits and signs" if script == OTHER else script
        rows.append([name, len(own), len(own) / len(entries), " ".join(longest)])
    more = len(order) - len(rows)
    return TableSection(
        title="Entries by script",
        columns=(
            ("script", "text"), ("entries", "count"), ("of all", "share"), ("the longest", "text"),
        ),
        rows=rows,
        note=f"{more:,} more scripts have fewer entries." if more else "",
    )  # fmt: skip


def _corpus_sections(
    path: Path, manifest: Mapping[str, Any], entries: Sequence[str], lowercase: Lowercase
) -> Iterator[Section | str]:
    """Cut a sample of the corpus into pieces, by language, if its files are unchanged."""
    from pipeline.report.corpus.page import corpus_of_records  # readers, with Beam
    from pipeline.report.corpus.sample import read_sample

    corpus = corpus_of_records(path, manifest)
    if isinstance(corpus, str):
        yield f'<p class="note">{escape(corpus)}</p>'
        return
    try:
        sample = read_sample(corpus.config, corpus.files, most_bytes=_SAMPLE_BYTES)
    except BertPipelineError as error:
        yield f'<p class="note">{escape(str(error))}</p>'
        return
    tokenizer = HostTokenizer(entries, lowercase=lowercase)
    languages = _sentences_by_language(sample.blocks)
    rows: list[list[Any]] = []
    all_words: Counter[str] = Counter()
    for language, sentences in languages.items():
        words = _count_words(sentences, lowercase)
        all_words.update(words)
        measured = measure_pieces(words, tokenizer)
        if measured.words >= _LEAST_WORDS:
            rows.append(
                [language, measured.words, measured.per_word, measured.whole, measured.unknown]
            )
    rows.sort(key=lambda row: -row[1])
    if rows:
        yield TableSection(
            title="Pieces per word by language",
            columns=(
                ("language", "text"), ("words", "count"), ("pieces a word", "number"),
                ("words in one piece", "percent"), ("[UNK]", "percent"),
            ),
            rows=rows[:_MOST_LANGUAGES],
            note=f"{sample.note} Languages as guessed from frequent words, else the script. "
            "Around 1.1 to 1.3 pieces a word are usual for the main language.",
        )  # fmt: skip
    split = _split_words(all_words, tokenizer)
    if split.rows:
        yield split


def _sentences_by_language(blocks: Sequence[Any]) -> dict[str, pa.Array]:
    """Group the sentences of blocks by the guessed language of their documents."""
    from pipeline.report.corpus.language import language_of

    groups: dict[str, list[pa.Array]] = {}
    for block in blocks:
        offsets = block.document_offsets.tolist()
        for begin, end in itertools.pairwise(offsets):
            sentences = block.sentences.slice(begin, end - begin)
            text = ""
            for sentence in sentences:
                text += f"{sentence.as_py()}\n"
                if len(text) > _LANGUAGE_CHARACTERS:
                    break
            language = language_of(text) or "no letters"
            groups.setdefault(language, []).append(sentences)
    return {language: pa.concat_arrays(parts) for language, parts in groups.items()}


def _count_words(sentences: pa.Array, lowercase: Lowercase) -> dict[str, int]:
    from pipeline.vocabulary.word_counter import WordCounter

    counter = WordCounter(lowercase=lowercase, max_word_length=_LONGEST_WORD)
    counter.count(sentences)
    words, counts = counter.words()
    return dict(zip(words.to_pylist(), counts.tolist(), strict=True))


def measure_pieces(words: Mapping[str, int], tokenizer: HostTokenizer) -> Pieces:
    """Measure the pieces of words.

    Args:
        words: number of occurrences of each word.
        tokenizer: of the vocabulary.
    """
    names = list(words)
    counts = np.array(list(words.values()), np.int64)
    tokens = tokenizer.tokenize_texts(names)
    lengths = np.diff(tokens.offsets)
    is_unknown = np.zeros(len(names), np.bool_)
    is_unknown[np.repeat(np.arange(len(names)), lengths)[tokens.ids == tokenizer.unk_id]] = True
    total = max(int(counts.sum()), 1)
    return Pieces(
        words=int(counts.sum()),
        per_word=float(counts @ lengths / total),
        whole=float(counts @ ((lengths == 1) & ~is_unknown) / total),
        unknown=float(counts @ is_unknown / total),
    )


def _split_words(words: Mapping[str, int], tokenizer: HostTokenizer) -> TableSection:
    """List the words that cost most: occurrences times pieces beyond the first."""
    names = list(words)
    counts = np.array(list(words.values()), np.int64)
    tokens = tokenizer.tokenize_texts(names)
    extra = counts * (np.diff(tokens.offsets) - 1)
    rows = []
    for place in np.argsort(-extra, kind="stable")[:_MOST_SPLIT]:
        if extra[place] > 0:
            ids = tokens.ids[tokens.offsets[place] : tokens.offsets[place + 1]]
            pieces = " ".join(tokenizer.vocab[token] for token in ids)
            rows.append([int(counts[place]), names[place], pieces])
    return TableSection(
        title="Words that cost most",
        columns=(("times", "count"), ("word", "text"), ("pieces", "text")),
        rows=rows,
        note="Words of the sample by how many pieces beyond the first they take in all.",
    )
