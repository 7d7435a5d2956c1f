"""The sections of `vocab` and `preprocess`."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from bert_tf.config.section import Section, option

CORPUS_FORMATS = ("auto", "text", "jsonl", "csv", "tsv", "parquet", "mediawiki")
MASKINGS = ("token", "ngram", "span")
RANDOM_TOKENS = ("uniform", "unigram")
PAIR_TASKS = ("nsp", "sop", "none")
TEXT_LAYOUTS = ("auto", "sentences", "lines", "paragraphs", "file")
CLEANING_STEPS = ("html", "controls", "whitespace", "nfc", "boilerplate")
DEFAULT_CLEANING = ("controls", "whitespace", "nfc")
SENTENCE_SPLITTERS = ("none", "rules", "sentencex")
DUPLICATES = ("keep", "exact", "near")


@dataclasses.dataclass(frozen=True, kw_only=True)
class CorpusSection(Section):
    """The keys that every job reading a corpus has."""

    input: tuple[str, ...] = option("corpus files: a path or quoted glob; repeatable")
    text_column: str = option("column or JSON key that holds the text", default="text")
    format: str = option(
        "format of the input files (auto: by file name)",
        default="auto",
        choices=CORPUS_FORMATS,
        advanced=True,
    )
    text_layout: str = option(
        "how plain text is laid out: sentences (one a line, blank lines between documents), lines "
        "(a document a line), paragraphs (a document a file, blank lines between its paragraphs), "
        "file (a document a file) (auto: sentences where blank lines are found, else file)",
        default="auto",
        choices=TEXT_LAYOUTS,
        advanced=True,
    )
    cleaning: tuple[str, ...] = option(
        "cleaning steps, done in this order: html (tags and entities go), controls (control "
        "characters become spaces), whitespace (runs become one space), nfc (Unicode's composed "
        "form), boilerplate (lines of cookie notices, copyright and navigation go)",
        default=DEFAULT_CLEANING,
        choices=CLEANING_STEPS,
        advanced=True,
    )
    min_document_characters: int = option(
        "documents of fewer characters are dropped", default=0, minimum=0, advanced=True
    )
    min_document_words: int = option(
        "documents of fewer words are dropped", default=0, minimum=0, advanced=True
    )
    min_letter_fraction: float = option(
        "documents with a smaller share of letters among their characters (white space aside) are "
        "dropped",
        default=0.0,
        minimum=0.0,
        maximum=1.0,
        advanced=True,
    )
    sentence_splitter: str = option(
        "how paragraphs become sentences: none (a line is a sentence), rules (all languages at "
        "once), sentencex (Wikimedia's library, for one language)",
        default="rules",
        choices=SENTENCE_SPLITTERS,
        advanced=True,
    )
    sentence_language: str = option(
        "code of the text's language, for sentencex", default="en", advanced=True
    )
    duplicates: str = option(
        "documents that occur again: keep them, or keep one of those that are exact copies but for "
        "case, spacing and punctuation, or also of those that are near",
        default="keep",
        choices=DUPLICATES,
    )
    near_duplicate_threshold: float = option(
        "documents are near duplicates from this Jaccard similarity of their word 5-grams on",
        default=0.8,
        minimum=0.1,
        maximum=1.0,
        advanced=True,
    )
    duplicate_lines: str = option(
        "lines that occur again anywhere in the corpus: keep them or drop all but the first",
        default="keep",
        choices=("keep", "drop"),
        advanced=True,
    )
    max_document_megabytes: float = option(
        "largest document of a corpus; a file with a larger one is refused",
        default=256.0,
        minimum=1.0,
        maximum=1024.0,
        advanced=True,
    )
    block_megabytes: float = option(
        "size of the blocks of whole documents that are read at once; what points into a block has "
        "32 bits",
        default=16.0,
        minimum=0.01,
        maximum=1024.0,
        advanced=True,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class VocabConfig(CorpusSection):
    """Counts the words of a corpus and learns a WordPiece vocabulary from them."""

    section_name: ClassVar[str] = "vocab"

    output: str = option("vocabulary file to write")
    vocab_size: int = option(
        "entries of the vocabulary", default=30_000, minimum=10, maximum=10_000_000
    )
    extend: str | None = option(
        "vocabulary whose pieces keep their ids; new ones are appended up to vocab_size",
        default=None,
        common=True,
    )
    lowercase: bool = option(
        "lower-case and strip accents, as bert-base-uncased",
        default=True,
        flag="--lowercase/--cased",
    )
    min_frequency: int = option(
        "merge pairs of pieces seen at least so often", default=2, minimum=1
    )
    limit_alphabet: int = option(
        "characters kept, the most frequent first", default=1000, minimum=1, advanced=True
    )
    extra_pieces: float = option(
        "share of pieces learned beyond vocab_size, of which the least used are taken away again "
        "(0: merges alone, as HuggingFace's trainer)",
        default=0.25,
        minimum=0.0,
        maximum=2.0,
        advanced=True,
    )
    max_word_length: int = option(
        "characters; longer words are left out of the count",
        default=100,
        minimum=1,
        advanced=True,
    )
    held_out_fraction: float = option(
        "share of documents kept out of the count to measure the vocabulary on",
        default=0.01,
        minimum=0.0,
        maximum=0.5,
        advanced=True,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PreprocessConfig(CorpusSection):
    """Turns a corpus into masked-LM and next-sentence-prediction TFRecords."""

    section_name: ClassVar[str] = "preprocess"

    vocab: str = option("vocabulary file")
    output: str = option("directory to write")
    lowercase: bool = option(
        "lower-case and strip accents, as the vocabulary was made",
        default=True,
        flag="--lowercase/--cased",
    )
    max_seq_length: int = option(
        "pieces in a sequence, with [CLS] and [SEP]", default=128, minimum=8, maximum=65_536
    )
    max_predictions_per_seq: int = option("masked pieces in a sequence", default=20, minimum=1)
    masked_lm_prob: float = option(
        "share of pieces that are masked", default=0.15, above=0.0, maximum=1.0
    )
    dupe_factor: int = option(
        "passes over the corpus with other masks (one with masking=dynamic)",
        default=10,
        minimum=1,
        maximum=1000,
    )
    short_seq_prob: float = option(
        "share of sequences made shorter than the maximum", default=0.1, minimum=0.0, maximum=1.0
    )
    whole_word_mask: bool = option(
        "mask all pieces of a word together",
        default=False,
        flag="--whole-word-mask/--no-whole-word-mask",
    )
    masking: str = option(
        "what is masked together: pieces (words with whole_word_mask), n-grams or spans of words; "
        "dynamic leaves records unmasked, train draws masks anew in every epoch",
        default="token",
        choices=(*MASKINGS, "dynamic"),
        advanced=True,
    )
    max_ngram_size: int = option(
        "words of the longest n-gram of masking=ngram",
        default=3,
        minimum=1,
        maximum=100,
        advanced=True,
    )
    random_tokens: str = option(
        "how pieces that replace masked ones are drawn: all alike, or as often as the corpus has "
        "them",
        default="uniform",
        choices=RANDOM_TOKENS,
        advanced=True,
    )
    pair_task: str = option(
        "what a sequence is: two segments, the second random or the next one (nsp); two "
        "consecutive segments, swapped or not (sop); sentences up to the length, also beyond a "
        "document's end, without a task (none)",
        default="nsp",
        choices=PAIR_TASKS,
        advanced=True,
    )
    random_next_prob: float = option(
        "probability that the second segment comes from another document (pair_task=nsp)",
        default=0.5,
        minimum=0.0,
        maximum=1.0,
        advanced=True,
    )
    seed: int = option("seed of all random choices; any whole number", default=12345)
    eval_fraction: float = option(
        "share of documents whose examples go to the eval shards",
        default=0.01,
        minimum=0.0,
        maximum=0.9,
    )
    num_shards: int = option(
        "training shards (0: by the size of the input, about 64 MB each)",
        default=0,
        minimum=0,
        maximum=100_000,
    )
    compression: str = option(
        "compression of the shards", default="none", choices=("none", "gzip"), advanced=True
    )
    feature_names: str = option(
        "record schema: the reference's names or TF Model Garden's",
        default="reference",
        choices=("reference", "model-garden"),
        advanced=True,
    )
    pool_megabytes: float = option(
        "size of the pools of documents that examples are made from",
        default=32.0,
        minimum=0.01,
        advanced=True,
    )

    def faults(self) -> list[str]:
        """Refuses lengths that cannot hold their predictions, and masks of unmasked records."""
        return self._length_faults() + self._dynamic_faults()

    @property
    def passes(self) -> int:
        """Passes over the corpus."""
        return 1 if self.masking == "dynamic" else self.dupe_factor

    def _dynamic_faults(self) -> list[str]:
        if self.masking != "dynamic":
            return []
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        return [
            f"{name}: records of masking=dynamic are masked by train; set train.{name} there"
            for name in ("masked_lm_prob", "whole_word_mask", "max_ngram_size", "random_tokens")
            if getattr(self, name) != defaults[name]
        ]

    def _length_faults(self) -> list[str]:
        if self.max_predictions_per_seq > self.max_seq_length - 3:
            return [
                f"max_predictions_per_seq: {self.max_predictions_per_seq} does not fit "
                f"max_seq_length {self.max_seq_length} (three places are [CLS] and [SEP]); "
                "lower one or raise the other"
            ]
        return []
