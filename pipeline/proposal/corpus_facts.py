"""A survey of a corpus for `init pretrain`: amount, lengths, copies, vocabulary."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from bert_tf.base.errors import InputError
from bert_tf.base.wording import quantity, shown_size
from bert_tf.config.bert import SIZES, BertConfig, sized_config
from bert_tf.config.sections import PreprocessConfig, VocabConfig
from bert_tf.data.text.casing import Lowercase, lowercase_of
from bert_tf.data.text.host_wordpiece import HostTokenizer
from pipeline.beam.files import FileInfo
from pipeline.corpus.document_block import DocumentBlock
from pipeline.corpus.duplicates.folding import fold_block
from pipeline.report.corpus.sample import CorpusSample, read_sample, text_scale
from pipeline.report.corpus.survey import lengths_of, letters_by_script, similar_documents
from pipeline.vocabulary.learner import CONTINUATION, SPECIALS, learn_vocabulary
from pipeline.vocabulary.word_counter import WordCounter

# Devlin et al. (2019, A.2) read their corpus about 40 times; Muennighoff et al. (2023) find nothing
# gained beyond about that.
EPOCHS = 40
# Hoffmann et al. (2022): tokens to be read per weight.
TOKENS_PER_WEIGHT = 20
VOCAB_SIZES = (30_000, 16_000, 8_000, 4_000)
# Gowda and May (2020): so many entries should occur so often for their embeddings to be learned.
_FREQUENT_FRACTION, _FREQUENT = 0.95, 100
# By width. 128: configs/train/tiny.yaml; up to 512: ELECTRA-Small (Clark et al. 2020), less for
# larger batches; from 768: Devlin et al. (2019).
_RATES = ((128, 1e-3), (256, 5e-4), (512, 3e-4), (math.inf, 1e-4))
_BATCHES = ((256, 64), (512, 128), (math.inf, 256))
_LEAST_BATCH = 16
_ENOUGH_STEPS = 10_000  # smaller batches make as many of little text
MOST_STEPS = 1_000_000  # of BERT
LENGTH = 128  # of BERT's first 90% of the steps
_LEAST_LENGTH, _LENGTH_MULTIPLE = 32, 16
_COVERED = 0.99  # of the documents fit in a sequence
_MASKED = 0.15
_EVALUATIONS = 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainingRecipe:
    """Keys of the sections `preprocess` and `train`."""

    size: str
    max_seq_length: int
    max_predictions_per_seq: int
    batch_size: int
    learning_rate: float
    steps: int
    eval_every: int

    def passes_over(self, tokens: float) -> float:
        """How often a run reads its text, with all positions filled (Devlin et al. 2019, A.2)."""
        return self.steps * self.batch_size * self.max_seq_length / max(tokens, 1)


def choose_vocab_size(frequencies_by_size: Sequence[tuple[int, np.ndarray]]) -> int:
    """Returns the largest vocabulary most of whose entries occur often enough to be learned.

    Takes sizes, largest first, each with the counts of its multi-character entries, float or int
    [entries]. Falls back to the last one.
    """
    for size, frequencies in frequencies_by_size:
        if len(frequencies) and np.mean(frequencies >= _FREQUENT) >= _FREQUENT_FRACTION:
            return size
    return frequencies_by_size[-1][0]


def choose_size(tokens: float, vocab_size: int) -> str:
    """The largest model that 40 passes over the text give 20 tokens per weight."""
    fitting = [
        size
        for size in SIZES
        if TOKENS_PER_WEIGHT * sized_config(size, vocab_size).encoder_parameters <= EPOCHS * tokens
    ]
    return fitting[-1] if fitting else next(iter(SIZES))


def choose_length(document_tokens: np.ndarray) -> int:
    """128 tokens as BERT, or fewer if 99% of the documents (lengths in tokens) fit."""
    needed = float(np.quantile(document_tokens, _COVERED)) + 3  # [CLS] and two [SEP]
    rounded = math.ceil(needed / _LENGTH_MULTIPLE) * _LENGTH_MULTIPLE
    return min(max(rounded, _LEAST_LENGTH), LENGTH)


def largest_batch(size: str) -> int:
    """The number of sequences in a batch where there is enough text."""
    width = SIZES[size]["hidden_size"]
    return next(batch for widest, batch in _BATCHES if width <= widest)


def choose_recipe(
    size: str,
    *,
    tokens: float,
    max_seq_length: int,
    batch_size: int | None = None,
    steps: int | None = None,
) -> PretrainingRecipe:
    """Chooses batch size, learning rate and steps, unless given."""
    width = SIZES[size]["hidden_size"]
    sequences = EPOCHS * tokens / max_seq_length
    batch = batch_size or largest_batch(size)
    while batch_size is None and batch > _LEAST_BATCH and sequences / batch < _ENOUGH_STEPS:
        batch //= 2
    steps = steps or min(_rounded(sequences / batch), MOST_STEPS)
    return PretrainingRecipe(
        size=size,
        max_seq_length=max_seq_length,
        max_predictions_per_seq=math.ceil(_MASKED * max_seq_length),
        batch_size=batch,
        learning_rate=next(rate for widest, rate in _RATES if width <= widest),
        steps=steps,
        eval_every=_rounded(steps / _EVALUATIONS),
    )


def shape_line(model: BertConfig) -> str:
    millions = model.encoder_parameters / 1e6
    return f"{model.num_hidden_layers} layers, {model.hidden_size} wide, {millions:.1f}M weights"


def _rounded(number: float) -> int:
    """Two significant digits, at least 1."""
    digits = max(len(str(int(number))) - 2, 0)
    return max(int(round(number, -digits)), 1)


_SAMPLE_BYTES = 16_000_000
_QUANTILES = {"5%": 0.05, "median": 0.5, "95%": 0.95, "longest": 1.0}
_SCRIPTS_SHOWN = 3


@dataclasses.dataclass(frozen=True, kw_only=True)
class CorpusFacts:
    """A corpus as estimated from a sample, whose text times `scale` is that of the corpus.

    `document_words` and `document_sentences`, int64, `duplicates` (copies of earlier documents) and
    `similar` (fraction of near copies) are of the sample. `about` goes before an amount.
    """

    sample: CorpusSample
    scale: float
    about: str
    document_words: np.ndarray
    document_sentences: np.ndarray
    duplicates: int
    similar: float
    letters: Mapping[str, int]
    vocab_size: int
    sample_tokens: int

    @property
    def documents(self) -> int:
        return round(self.scale * len(self.document_words))

    @property
    def words(self) -> int:
        return round(self.scale * int(self.document_words.sum()))

    @property
    def tokens(self) -> int:
        return round(self.scale * self.sample_tokens)

    @property
    def document_tokens(self) -> np.ndarray:
        """Estimated tokens of each document of the sample, float64."""
        return self.document_words * (self.sample_tokens / max(int(self.document_words.sum()), 1))


def look_at_corpus(config: PreprocessConfig, files: Sequence[FileInfo]) -> CorpusFacts:
    """Reads a sample, or all of a small corpus; raises InputError if it has no text."""
    sample = read_sample(config, files, most_bytes=_SAMPLE_BYTES)
    blocks = [block for block in sample.blocks if block.num_documents]
    if not blocks:
        raise InputError(
            f"{', '.join(config.input)}: no text found; if the text is not in the column "
            f'"{config.text_column}", name it with --set preprocess.text_column=…'
        )
    lengths, folded = lengths_of(blocks), list(map(fold_block, blocks))
    near = similar_documents(blocks, folded, threshold=config.near_duplicate_threshold, most=0)
    keys = np.concatenate([each.document_keys for each in folded])
    scale = 1.0 if sample.is_whole else text_scale(config, sample, files)
    vocab_size, tokens = _vocabulary(
        blocks, lowercase_of(config.lowercase, config.keep_accents), scale
    )
    return CorpusFacts(
        sample=sample,
        scale=scale,
        about="" if sample.is_whole else "about ",
        document_words=lengths["words of a document"],
        document_sentences=lengths["sentences of a document"],
        duplicates=len(keys) - len(np.unique(keys)),
        similar=near.similar / max(near.compared, 1),
        letters=letters_by_script(blocks),
        vocab_size=vocab_size,
        sample_tokens=tokens,
    )


def facts_lines(facts: CorpusFacts, files: Sequence[FileInfo], encoding: str) -> Iterator[str]:
    stored = shown_size(sum(file.bytes for file in files))
    part = "all read" if facts.sample.is_whole else "a sample read, from files spread over them"
    yield f"  files       {quantity(len(files), 'file')}, {stored}; {part}"
    guess = "" if encoding == "utf-8" else ", a guess: check that the vocabulary is right"
    yield f"  encoding    {encoding}{guess}"
    rejected = sum(len(block.evidence.rejects) for block in facts.sample.blocks)
    faulty = f"; {quantity(rejected, 'line')} cannot be read" if rejected else ""
    yield (
        f"  text        {facts.about}{quantity(facts.documents, 'document')}, "
        f"{quantity(facts.words, 'word')}, {quantity(facts.tokens, 'token')}{faulty}"
    )
    quantiles = ", ".join(
        f"{name} {int(np.quantile(facts.document_words, q)):,}" for name, q in _QUANTILES.items()
    )
    yield f"  words       {quantiles} (of a document)"
    total = max(sum(facts.letters.values()), 1)
    scripts = sorted(facts.letters.items(), key=lambda item: -item[1])[:_SCRIPTS_SHOWN]
    yield "  scripts     " + ", ".join(f"{name} {n / total:.1%}" for name, n in scripts)
    if facts.duplicates or facts.similar:
        yield (
            f"  duplicates  {quantity(facts.duplicates, 'document')} equal to an earlier one; "
            f"{facts.similar:.1%} of the others resemble another"
        )


def _vocabulary(
    blocks: Sequence[DocumentBlock], lowercase: Lowercase, scale: float
) -> tuple[int, int]:
    """The size that suits the corpus, and the sample's tokens with it."""
    counter = WordCounter(lowercase=lowercase, max_word_length=VocabConfig.max_word_length)
    for block in blocks:
        counter.count(block.sentences)
    words, counts = counter.words()
    learned = learn_vocabulary(
        words,
        counts,
        vocab_size=VOCAB_SIZES[0],
        min_frequency=VocabConfig.min_frequency,
        limit_alphabet=VocabConfig.limit_alphabet,
    )
    texts = words.to_pylist()
    # The corpus decides the characters, the chosen size the number of longer pieces.
    is_merged = np.array([len(piece.removeprefix(CONTINUATION)) > 1 for piece in learned.pieces])
    is_merged[: len(SPECIALS)] = False
    frequencies: list[tuple[int, np.ndarray]] = []
    tokens_by_size: dict[int, int] = {}
    for size in VOCAB_SIZES:  # each is the beginning of the largest, which was not pruned
        pieces = learned.pieces[:size]
        tokens = HostTokenizer(pieces, lowercase=lowercase).tokenize_texts(texts)
        weights = np.repeat(counts, np.diff(tokens.offsets)).astype(np.float64)
        found = np.bincount(tokens.ids, weights, minlength=len(pieces))
        frequencies.append((size, scale * found[is_merged[: len(pieces)]]))
        tokens_by_size[size] = int(found.sum())
    chosen = choose_vocab_size(frequencies)
    return chosen, tokens_by_size[chosen]
