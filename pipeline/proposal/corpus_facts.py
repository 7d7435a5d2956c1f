"""A survey of a corpus for `init pretrain`: amount, lengths, copies, vocabulary."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from bert_tf.base.errors import InputError
from bert_tf.base.wording import quantity, shown_size
from bert_tf.config.sections import PreprocessConfig, VocabConfig
from bert_tf.data.text.casing import Lowercase, lowercase_of
from bert_tf.data.text.host_wordpiece import HostTokenizer
from pipeline.beam.files import FileInfo
from pipeline.corpus.document_block import DocumentBlock
from pipeline.corpus.duplicates.folding import fold_block
from pipeline.proposal.pretraining_recipe import VOCAB_SIZES, choose_vocab_size
from pipeline.report.corpus.sample import CorpusSample, read_sample, text_scale
from pipeline.report.corpus.survey import lengths_of, letters_by_script, similar_documents
from pipeline.vocabulary.learner import CONTINUATION, SPECIALS, learn_vocabulary
from pipeline.vocabulary.word_counter import WordCounter

_SAMPLE_BYTES = 16_000_000  # of text
_QUANTILES = {"5%": 0.05, "median": 0.5, "95%": 0.95, "longest": 1.0}
_SCRIPTS_SHOWN = 3


@dataclasses.dataclass(frozen=True, kw_only=True)
class CorpusFacts:
    """A corpus as estimated from a sample.

    Attributes:
        sample: the part that was read.
        scale: the text of the corpus as a multiple of that of the sample.
        about: word before an estimated amount; "" if the sample is all.
        document_words: int64 [documents], of the sample.
        document_sentences: int64 [documents], of the sample.
        duplicates: number of documents of the sample that equal an earlier one.
        similar: fraction of the sample's distinct documents that are near another one.
        letters: number of letters of the sample, by script.
        vocab_size: that suits the corpus.
        sample_tokens: number of tokens of the sample, with a vocabulary of this size.
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
        """Return the documents of the corpus."""
        return round(self.scale * len(self.document_words))

    @property
    def words(self) -> int:
        """Return the words of the corpus."""
        return round(self.scale * int(self.document_words.sum()))

    @property
    def tokens(self) -> int:
        """Return the tokens of the corpus."""
        return round(self.scale * self.sample_tokens)

    @property
    def document_tokens(self) -> np.ndarray:
        """Return the tokens of each document of the sample, estimated from its words, float64."""
        return self.document_words * (self.sample_tokens / max(int(self.document_words.sum()), 1))


def look_at_corpus(
    config: PreprocessConfig, files: Sequence[FileInfo], layouts: Mapping[str, str]
) -> CorpusFacts:
    """Read a sample, or all of a small corpus.

    Args:
        config: settings of reading.
        files: of the corpus.
        layouts: of plain text files, by path.

    Returns:
        The facts by which settings are chosen.

    Raises:
        InputError: the corpus has no text.
    """
    sample = read_sample(config, files, most_bytes=_SAMPLE_BYTES, layouts=layouts)
    blocks = [block for block in sample.blocks if block.num_documents]
    if not blocks:
        raise InputError(
            f"{', '.join(config.input)}: no text found; if the text is not in the column "
            f'"{config.text_column}", name it with --set preprocess.text_column=…'
        )
    lengths = lengths_of(blocks)
    folded = list(map(fold_block, blocks))
    near = similar_documents(blocks, folded, threshold=config.near_duplicate_threshold, most=0)
    keys = np.concatenate([block.document_keys for block in folded])
    scale = 1.0 if sample.is_whole else text_scale(config, sample, files)
    lowercase = lowercase_of(config.lowercase, config.keep_accents)
    vocab_size, tokens = _vocabulary(blocks, lowercase, scale)
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
    """Yield lines on a corpus for the user: files, encoding, amounts, lengths, scripts, copies."""
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
        f"{name} {int(np.quantile(facts.document_words, share)):,}"
        for name, share in _QUANTILES.items()
    )
    yield f"  words       {quantiles} (of a document)"
    total = max(sum(facts.letters.values()), 1)
    scripts = sorted(facts.letters.items(), key=lambda item: -item[1])[:_SCRIPTS_SHOWN]
    shares = ", ".join(f"{name} {letters / total:.1%}" for name, letters in scripts)
    yield f"  scripts     {shares}"
    if facts.duplicates or facts.similar:
        yield (
            f"  duplicates  {quantity(facts.duplicates, 'document')} equal to an earlier one; "
            f"{facts.similar:.1%} of the others resemble another"
        )


def _vocabulary(
    blocks: Sequence[DocumentBlock], lowercase: Lowercase, scale: float
) -> tuple[int, int]:
    """Return the size of vocabulary that suits the corpus, and the sample's tokens with it.

    Only the largest vocabulary is learned. Its merges are in the order of frequency, so each
    smaller one is its beginning.
    """
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
    for size in VOCAB_SIZES:
        pieces = learned.pieces[:size]
        tokens = HostTokenizer(pieces, lowercase=lowercase).tokenize_texts(texts)
        weights = np.repeat(counts, np.diff(tokens.offsets)).astype(np.float64)
        piece_counts = np.bincount(tokens.ids, weights, minlength=len(pieces))
        frequencies.append((size, scale * piece_counts[is_merged[: len(pieces)]]))
        tokens_by_size[size] = int(piece_counts.sum())
    chosen = choose_vocab_size(frequencies)
    return chosen, tokens_by_size[chosen]
