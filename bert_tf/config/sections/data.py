"""The sections of `vocab` and `preprocess`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, ClassVar

from bert_tf.base.errors import check_packages
from bert_tf.config.plain_yaml import read_yaml_lines
from bert_tf.config.section import (
    Fraction,
    NonNegativeInt,
    PositiveFraction,
    PositiveInt,
    advanced,
    option,
    optional,
    repeatable,
)
from bert_tf.config.sections.masking import (
    MASKINGS,
    NgramSize,
    changed_masking,
    masking_option,
    replacement_faults,
)
from bert_tf.config.sections.tables import RowSection
from bert_tf.config.values import Bounds

CORPUS_FORMATS = ("auto", "text", "jsonl", "csv", "tsv", "parquet", "mediawiki", "html", "warc")
_WEB_NAME = re.compile(r"\.(html?|warc|wet)(\.(gz|bz2|zst))?$", re.IGNORECASE)
HTML_EXTRACTORS = ("resiliparse", "trafilatura")
TEXT_LAYOUTS = (
    "auto",
    "sentences",
    "lines",
    "paragraphs",
    "file",
    "paragraph_lines",
    "articles",
    "endoftext",
    "wikiextractor",
)
CLEANING_STEPS = ("html", "controls", "whitespace", "nfc", "boilerplate")
DEFAULT_CLEANING = ("controls", "whitespace", "nfc")
SENTENCE_SPLITTERS = ("none", "rules", "sentencex")
PERSONAL_DATA = ("email", "ip", "phone", "iban", "card", "all")
# The default of create_pretraining_data.py, for 128 tokens.
_LEAST_PREDICTIONS = 20
_SPECIAL_TOKENS = 3  # [CLS] and two [SEP], which are never masked


def listed(values: Iterable[str]) -> list[str]:
    """Split values at commas."""
    return [part.strip() for value in values for part in value.split(",")]


def curation_entries(curation: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the entries of the key `curation`, and of the YAML files in it.

    Yields:
        Place, for messages, and entry: a rule, or `rule=value`.
    """
    for entry in listed(curation):
        if entry.endswith((".yaml", ".yml")):
            for line, name, value in read_yaml_lines(entry):
                place = f"{entry}:{line}"
                if value in ("true", "yes", "on"):
                    yield place, name
                elif value in ("false", "no"):
                    yield place, f"{name}=off"
                else:
                    yield place, f"{name}={value}"
        else:
            yield "curation", entry


class CorpusSection(RowSection):
    """Keys of all jobs that read a corpus."""

    always_needed: ClassVar[tuple[str, ...]] = ("text_column",)

    input: tuple[str, ...] = option("corpus files: path or quoted glob; repeatable", reads="files")
    text_column: str = option("column or JSON key of the text", "text")
    format: str = advanced(
        "format of the input files (auto: detect from the file name)", choices=CORPUS_FORMATS
    )
    text_layout: str = advanced(
        "layout of plain text: sentences (one per line, blank lines between documents), "
        "paragraph_lines (the same with a paragraph per line), lines (one document per line), "
        "paragraphs (one document per file, blank lines between paragraphs), articles (a blank "
        "line between paragraphs, several between documents), file (one document per file), "
        "endoftext (<|endoftext|> between documents), wikiextractor (one document per <doc>), "
        "auto (detect from a sample of the files)",
        choices=TEXT_LAYOUTS,
    )
    html_extractor: str = advanced(
        "library that extracts the main text of HTML pages: resiliparse, or trafilatura (slower)",
        choices=HTML_EXTRACTORS,
    )
    cleaning: tuple[str, ...] = advanced(
        "cleaning steps, applied in this order: html (remove tags, decode entities), controls "
        "(replace control characters with spaces), whitespace (collapse runs to one space), nfc "
        "(Unicode normalization form C), boilerplate (remove cookie notices, copyright and "
        "navigation lines)",
        DEFAULT_CLEANING,
        choices=CLEANING_STEPS,
    )
    min_document_characters: NonNegativeInt = advanced("drop documents with fewer characters", 0)
    min_document_words: NonNegativeInt = advanced("drop documents with fewer words", 0)
    min_letter_fraction: Fraction = advanced(
        "drop documents with a smaller fraction of letters among their non-whitespace characters",
        0.0,
    )
    curation: tuple[str, ...] = repeatable(
        "rules that drop documents and lines, off by default: the groups gopher (gopher_quality, "
        "gopher_repetition), c4 and fineweb, or single rules, with =THRESHOLD or =off; or a .yaml "
        "file of them (gopher_min_words: 30)"
    )
    languages: tuple[str, ...] = repeatable(
        "languages of documents and long lines to keep: codes (en,de), also unknown for documents "
        "below language_threshold; needs py3langid"
    )
    language_threshold: Fraction = option(
        "minimum probability of a document's or line's language", 0.5
    )
    personal_data: tuple[str, ...] = repeatable(
        "personal data to replace by a word, off by default: email, ip (public addresses), phone "
        "(needs phonenumbers), iban, card, or all"
    )
    phone_regions: tuple[str, ...] = option(
        "countries (US,DE) whose phone numbers are also replaced without + and country code",
        default=("US",),
    )
    exclude: tuple[str, ...] = repeatable(
        "files with text that must not be in the output, such as evaluation data: tables, SQuAD "
        "JSON or plain text; path or quoted glob; repeatable",
        reads="files",
    )
    exclude_action: str = advanced(
        "action on text shared with exclude: drop the document, or cut only the paragraphs",
        choices=("drop", "cut"),
    )
    sentence_splitter: str = advanced(
        "sentence splitter for paragraphs: none (one sentence per line), rules (any "
        "language), sentencex (Wikimedia's library, for sentence_language)",
        "rules",
        choices=SENTENCE_SPLITTERS,
    )
    sentence_language: str = advanced("language code of the text for sentencex", "en")
    duplicates: str = option(
        "duplicate documents: keep, exact (keep one of several documents that are equal up to "
        "case, spacing and punctuation), near (also keep only one of several near duplicates)",
        choices=("keep", "exact", "near"),
    )
    near_duplicate_threshold: Annotated[float, Bounds(0.1, 1.0)] = advanced(
        "minimum Jaccard similarity of word 5-grams for near duplicates", 0.8
    )
    duplicates_against: tuple[str, ...] = repeatable(
        "other corpus files, read as input is, or .signatures files of former runs: documents that "
        "are near duplicates of one there are dropped; path or quoted glob; repeatable",
        reads="files",
    )
    duplicate_lines: str = advanced(
        "lines that occur more than once in the corpus: keep, drop (keep only the first)",
        choices=("keep", "drop"),
    )
    max_document_megabytes: Annotated[float, Bounds(1.0, 1024.0)] = advanced(
        "maximum document size; files with a larger document are an error", 256.0
    )
    block_megabytes: Annotated[float, Bounds(0.01, 1024.0)] = advanced(
        "maximum size of the blocks of whole documents that are processed at once; use less for "
        "a small corpus; at most 1024 (32-bit offsets)",
        16.0,
        affects_output=False,
    )

    def as_dict(self) -> dict[str, Any]:
        """Return the values, with the entries of YAML files instead of their names."""
        return super().as_dict() | {
            "curation": [entry for _, entry in curation_entries(self.curation)]
        }

    @property
    def keeps_signatures(self) -> bool:
        """Return whether the signatures of documents are written."""
        return False

    @property
    def compares_documents(self) -> bool:
        """Return whether documents or lines are compared with others."""
        drops = self.duplicates != "keep" or self.duplicate_lines != "keep"
        return drops or bool(self.duplicates_against) or self.keeps_signatures

    def reads_web(self, path: str) -> bool:
        """Return whether a path or glob names HTML or WARC files."""
        named = _WEB_NAME.search(path) is not None
        return named if self.format == "auto" else self.format in ("html", "warc")

    def check_installed(self) -> None:
        check_splitter_installed(self.sentence_splitter)
        if self.languages:
            check_packages("languages", ["py3langid"], extra="languages")
        if {"phone", "all"} & set(listed(self.personal_data)):
            check_packages(
                "personal_data phone",
                ["phonenumbers"],
                extra="personal-data",
                instead="list the other kinds without phone",
            )
        if any(map(self.reads_web, self.input)):
            check_web_packages(self.html_extractor)

    def faults(self) -> Iterator[str]:
        for kind in listed(self.personal_data):
            if kind not in PERSONAL_DATA:
                yield f"personal_data: no kind {kind!r}; known kinds: {', '.join(PERSONAL_DATA)}"


def check_web_packages(extractor: str) -> None:
    """Raise UsageError if a package that reads web pages is missing."""
    check_packages("HTML and WARC", ["fastwarc", "resiliparse"], extra="web")
    if extractor == "trafilatura":
        check_packages("html_extractor trafilatura", ["trafilatura"], extra="trafilatura")


def check_splitter_installed(name: str) -> None:
    """Raise UsageError if the library of a sentence splitter is missing."""
    if name == "sentencex":
        check_packages(
            "sentence_splitter sentencex",
            ["sentencex"],
            extra="sentencex",
            instead="choose sentence_splitter rules",
        )


class VocabConfig(CorpusSection, section_name="vocab"):
    """Learns a WordPiece vocabulary from the words of a corpus."""

    output: str = option("vocabulary file to write", writes="file")
    vocab_size: Annotated[int, Bounds(10, 10_000_000)] = option(
        "number of tokens in the vocabulary", 30_000
    )
    extend: str | None = optional(
        "vocabulary to extend: existing tokens keep their ids, new ones are appended up to "
        "vocab_size",
        common=True,
        reads="file",
    )
    min_saving: NonNegativeInt = option(
        "with --extend: leave out new tokens that save fewer tokens of the corpus than this (0: "
        "none)",
        0,
    )
    lowercase: bool | None = optional(
        "lowercase and strip accents, like bert-base-uncased (default: yes, or as in the "
        "vocabulary to extend)",
        flag="--lowercase/--cased",
    )
    keep_accents: bool = option(
        "lowercase but keep accents and vowel signs, for Hindi, Ukrainian, Vietnamese", False
    )
    min_frequency: PositiveInt = option("minimum frequency of a token pair to be merged", 2)
    limit_alphabet: PositiveInt = advanced(
        "maximum number of distinct characters; the most frequent are kept", 1000
    )
    extra_pieces: Annotated[float, Bounds(0.0, 2.0)] = advanced(
        "extra tokens to learn before pruning the least used, as a fraction of vocab_size (0: "
        "no pruning, like HuggingFace's trainer)",
        0.25,
    )
    max_word_length: PositiveInt = advanced(
        "maximum characters per word; longer words are ignored", 100
    )
    held_out_fraction: Annotated[float, Bounds(0.0, 0.5)] = advanced(
        "fraction of documents held out to evaluate the vocabulary", 0.01
    )

    def __post_init__(self) -> None:
        """Lower-case new vocabularies by default; an existing one decides itself."""
        if self.lowercase is None and self.extend is None:
            object.__setattr__(self, "lowercase", True)

    def faults(self) -> Iterator[str]:
        yield from _casing_faults(self)
        if self.min_saving and self.extend is None:
            yield "min_saving: only applies to new tokens of --extend; leave it out"


def _casing_faults(config: VocabConfig | PreprocessConfig) -> Iterator[str]:
    if config.keep_accents and config.lowercase is False:
        yield "keep_accents: only applies to lowercasing; --cased keeps accents, so leave one out"


class PreprocessConfig(CorpusSection, section_name="preprocess"):
    """Writes TFRecords for masked-LM and next-sentence prediction, also readable by the
    trainers of google-research/bert, TF Model Garden and NVIDIA.
    """

    vocab: str = option("vocabulary file", reads="file")
    output: str = option("output directory", writes="folder")
    lowercase: bool | None = optional(
        "lowercase and strip accents (default: as in the vocabulary)", flag="--lowercase/--cased"
    )
    keep_accents: bool = option(
        "lowercase but keep accents and vowel signs, for Hindi, Ukrainian, Vietnamese (default: "
        "as in the vocabulary)",
        False,
    )
    max_seq_length: Annotated[int, Bounds(8, 65_536)] = option(
        "maximum tokens per sequence, including [CLS] and [SEP]", 128
    )
    max_predictions_per_seq: PositiveInt = optional(
        "maximum masked tokens per sequence (default: masked_lm_prob of max_seq_length, at "
        "least 20)"
    )
    masked_lm_prob: PositiveFraction = masking_option("masked_lm_prob", advanced=False)
    dupe_factor: Annotated[int, Bounds(1, 1000)] = option(
        "passes over the corpus with different masks (1 with masking=dynamic)", 10
    )
    short_seq_prob: Fraction = option(
        "probability of making a sequence shorter than max_seq_length", 0.1
    )
    whole_word_mask: bool = masking_option(
        "whole_word_mask", flag="--whole-word-mask/--no-whole-word-mask", advanced=False
    )
    masking: str = masking_option(
        "masking",
        also="; dynamic: leave records unmasked, so that train draws new masks every epoch",
        choices=(*MASKINGS, "dynamic"),
    )
    max_ngram_size: NgramSize = masking_option("max_ngram_size")
    mask_replacements: tuple[Fraction, ...] = masking_option("mask_replacements")
    random_tokens: str = masking_option("random_tokens")
    pair_task: str = advanced(
        "sentence-pair objective: nsp (the second segment is the next one or a random one), sop "
        "(two consecutive segments, swapped or not), none (full sentences up to the length, "
        "across documents)",
        choices=("nsp", "sop", "none"),
    )
    random_next_prob: Fraction = advanced(
        "probability that the second segment comes from another document (pair_task=nsp)", 0.5
    )
    seed: int = option("random seed; any integer", 12345)
    eval_fraction: Annotated[float, Bounds(0.0, 0.9)] = option(
        "fraction of documents held out for the eval shards", 0.01
    )
    num_shards: Annotated[int, Bounds(0, 100_000)] = option(
        "number of training shards (0: from the input size, about 64 MB per shard)", 0
    )
    compression: str = advanced("compression of the shards", choices=("none", "gzip"))
    feature_names: str = advanced(
        "naming of the features: google-research/bert (reference) or TF Model Garden",
        choices=("reference", "model-garden"),
    )
    pool_megabytes: Annotated[float, Bounds(minimum=0.01)] = advanced(
        "size of a pool, the documents that are shuffled and turned into examples together", 32.0
    )
    write_signatures: bool = option(
        "also write OUTPUT/documents.signatures, by which --duplicates-against of later runs "
        "recognizes these documents (1.1 KB each, no text)",
        False,
    )

    @property
    def keeps_signatures(self) -> bool:
        return self.write_signatures

    def __post_init__(self) -> None:
        """Derive the default number of predictions, which fits any length."""
        if self.max_predictions_per_seq is None:
            wanted = max(self.wanted_predictions, _LEAST_PREDICTIONS)
            most = self.max_seq_length - _SPECIAL_TOKENS
            object.__setattr__(self, "max_predictions_per_seq", min(wanted, most))

    @property
    def wanted_predictions(self) -> int:
        """Predictions that mask `masked_lm_prob` of the longest sequence."""
        return math.ceil(self.masked_lm_prob * self.max_seq_length)

    def faults(self) -> Iterator[str]:
        yield from _casing_faults(self)
        yield from replacement_faults(self)
        if self.max_predictions_per_seq > self.max_seq_length - _SPECIAL_TOKENS:
            yield (
                f"max_predictions_per_seq: {self.max_predictions_per_seq} does not fit "
                f"max_seq_length {self.max_seq_length} (three places are [CLS] and [SEP]); "
                "lower one or raise the other"
            )
        if self.write_signatures and self.duplicate_lines == "drop":
            yield (
                "write_signatures: describes whole documents, but duplicate_lines=drop takes lines "
                "out of them; leave one out"
            )
        if self.masking != "dynamic":
            return
        for name in changed_masking(self):
            if name != "masking":
                yield (
                    f"{name}: records of masking=dynamic are masked by train; set train.{name} "
                    "there"
                )

    @property
    def passes(self) -> int:
        """Return the passes over the corpus, each with other pairs and masks."""
        return 1 if self.masking == "dynamic" else self.dupe_factor
