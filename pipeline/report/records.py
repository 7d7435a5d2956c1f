"""Pretraining records, read and summarized: statistics, and examples with masks and labels."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import tensorflow as tf

from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.wording import quantity, shown_size
from bert_tf.data.records.dataset_info import PretrainingData
from bert_tf.data.records.parsing import parse_records, parse_unmasked_records
from bert_tf.data.text.vocab_file import read_vocab
from bert_tf.tasks.base.report_sections import HistogramSection
from pipeline.outputs.manifest import read_manifest

_BAR_WIDTH = 40  # characters
_RECORDS_READ = 10_000  # of a split
_BARS = 16  # of a histogram, at most
_FREQUENT_TOKENS = 20
_LABEL_WORDS = {"nsp": "a random second segment", "sop": "swapped segments"}
# Meanings of the labels 0 and 1.
_LABEL_MEANINGS = {
    "nsp": ("the second segment is the next one", "the second segment is random"),
    "sop": ("the segments are in order", "the segments are swapped"),
}


@dataclasses.dataclass(frozen=True)
class ShownToken:
    """A token of an example.

    Attributes:
        text: the token in the input.
        target: the token to predict there, if any.
    """

    text: str
    target: str | None = None


@dataclasses.dataclass(frozen=True)
class ShownExample:
    """An example.

    Attributes:
        title: its number, tokens, targets and label.
        segments: name and tokens of each, without [CLS] and [SEP].
    """

    title: str
    segments: list[tuple[str, list[ShownToken]]]


@dataclasses.dataclass(frozen=True)
class SplitSummary:
    """Facts on a split to show.

    Attributes:
        name: `train` or `eval`.
        facts: sentences.
        histograms: of tokens and targets.
        frequent: the most frequent tokens, with their fractions.
        examples: the first records.
    """

    name: str
    facts: list[str]
    histograms: list[HistogramSection] = dataclasses.field(default_factory=list)
    frequent: list[tuple[str, float]] = dataclasses.field(default_factory=list)
    examples: list[ShownExample] = dataclasses.field(default_factory=list)


def summarize_records(path: str | Path, *, samples: int) -> list[SplitSummary]:
    """Summarize splits by their first 10,000 records.

    Args:
        path: of a folder of records.
        samples: examples of the split `train`.

    Returns:
        A summary for `train` and one for `eval`.

    Raises:
        UsageError: the folder is not one of records, or a shard of it is lost.
        InputError: a record is damaged.
    """
    data = PretrainingData.from_manifest(path, read_manifest(path))
    vocab = read_vocab(Path(path) / "vocab.txt")
    summaries = []
    for split in ("train", "eval"):
        if data.paths(split):
            wanted = samples if split == "train" else 0
            summaries.append(_summarize(split, data, vocab, wanted))
        else:
            summaries.append(SplitSummary(split, ["no shards"]))
    return summaries


def _summarize(split: str, data: PretrainingData, vocab: list[str], samples: int) -> SplitSummary:
    features = _first_rows(split, data, vocab)
    facts = [_shown_shards(data.paths(split))]
    count = len(features["input_mask"])
    if count == 0:
        return SplitSummary(split, facts)
    lengths = features["input_mask"].sum(axis=1)
    targets = features["masked_lm_weights"].sum(axis=1).astype(np.int64)
    longest = features["input_mask"].shape[1]
    most_targets = features["masked_lm_weights"].shape[1]
    shape = f"{lengths.mean():.1f} tokens per record, unmasked"
    if most_targets:
        shape = f"{lengths.mean():.1f} tokens and {targets.mean():.1f} targets per record"
    parts = [shape, f"{1 - lengths.mean() / longest:.1%} padding"]
    if data.pair_task in _LABEL_WORDS:
        fraction = features["next_sentence_labels"].mean()
        parts.append(f"{fraction:.1%} with {_LABEL_WORDS[data.pair_task]}")
    facts.append(f"of the first {quantity(count, 'record')}: {', '.join(parts)}")
    histograms = [make_histogram("tokens per record", lengths, longest)]
    if most_targets:
        histograms.append(make_histogram("targets per record", targets, most_targets))
    return SplitSummary(
        split,
        facts,
        histograms,
        _frequent_tokens(features, vocab),
        [_show_example(row, features, vocab, data) for row in range(min(samples, count))],
    )


def _shown_shards(shards: list[str]) -> str:
    """Return the number and mean size of shards in words."""
    number = len(shards)
    num_bytes = sum(Path(shard).stat().st_size for shard in shards)
    size = shown_size(round(num_bytes / number))
    if number > 1:
        size = f"about {size} each"
    return f"{quantity(number, 'shard')} of {size}"


def make_histogram(title: str, values: np.ndarray, highest: int) -> HistogramSection:
    """Count records in equal ranges from 1 to the highest possible value.

    Args:
        title: such as "tokens per record"; the part before "per" names the values.
        values: int64 [records], from 1.
        highest: the highest possible value, where the last range ends.

    Returns:
        A section to draw.
    """
    # Rounded up, so that the last range reaches the highest value.
    width = -(-highest // _BARS)
    starts = np.arange(1, highest + 1, width).tolist()
    counts = np.bincount(np.maximum(values - 1, 0) // width, minlength=len(starts))
    ends = [min(start + width - 1, highest) for start in starts]
    # Bars of a single value have a tick in the middle, others have one at each edge.
    ticks = starts if width == 1 else [*starts, highest + 1]
    return HistogramSection(
        title=title,
        x_title=title.split(" per ")[0],
        noun="records",
        names=[
            f"{start}" if start == end else f"{start} to {end}"
            for start, end in zip(starts, ends, strict=True)
        ],
        ticks=list(map(str, ticks)),
        counts=counts,
    )


def _frequent_tokens(features: dict[str, np.ndarray], vocab: list[str]) -> list[tuple[str, float]]:
    """Return the most frequent tokens with their fractions, without special tokens."""
    ids = features["input_word_ids"][features["input_mask"] > 0]
    counts = np.bincount(ids, minlength=len(vocab))
    for index, token in enumerate(vocab):
        if token.startswith("[") and token.endswith("]") and len(token) > 2:
            counts[index] = 0
    # Ties are broken by the order of the vocabulary.
    order = np.argsort(-counts, kind="stable")[:_FREQUENT_TOKENS]
    return [(vocab[index], float(counts[index] / len(ids))) for index in order if counts[index]]


def _show_example(
    row: int, features: dict[str, np.ndarray], vocab: list[str], data: PretrainingData
) -> ShownExample:
    """Return a record with the targets at their places."""
    length = int(features["input_mask"][row].sum())
    tokens = [ShownToken(vocab[token]) for token in features["input_word_ids"][row, :length]]
    weights = features["masked_lm_weights"][row] > 0
    positions = features["masked_lm_positions"][row][weights]
    for position, target in zip(positions, features["masked_lm_ids"][row][weights], strict=True):
        tokens[position] = ShownToken(tokens[position].text, vocab[target])
    title = f"example {row + 1}: {quantity(length, 'token')}, {quantity(len(positions), 'target')}"
    if data.pair_task == "none":
        return ShownExample(title, [("text", tokens[1 : length - 1])])
    label = int(features["next_sentence_labels"][row])
    # The second segment has type 1 up to the end of the record.
    border = length - int(features["input_type_ids"][row].sum())
    return ShownExample(
        f"{title}, {_LABEL_MEANINGS[data.pair_task][label]}",
        [("first", tokens[1 : border - 1]), ("second", tokens[border : length - 1])],
    )


def record_lines(summaries: list[SplitSummary]) -> list[str]:
    """Write facts, histograms, frequent tokens and examples of each split.

    Tokens are `[MASK→cat]` if masked, `[dog→cat]` if replaced, `[cat]` if kept but predicted.
    """
    lines = []
    for summary in summaries:
        lines += [f"{summary.name}: {fact}" for fact in summary.facts]
        for histogram in summary.histograms:
            lines += histogram_lines(histogram, summary.name)
        if summary.frequent:
            frequent = (f"{token} {fraction:.1%}" for token, fraction in summary.frequent)
            lines.append(f"{summary.name}: most frequent: {', '.join(frequent)}")
        for example in summary.examples:
            lines.append(example.title)
            for name, tokens in example.segments:
                text = " ".join(map(_token_text, tokens)).replace(" ##", "")
                lines.append(f"  {name + ':':8}{text}")
    return lines


def histogram_lines(histogram: HistogramSection, split: str) -> list[str]:
    """Draw a histogram as lines of text, with shares as percent."""
    lines = [f"{split}: {histogram.title}"]
    shares = histogram.counts / max(int(histogram.counts.sum()), 1)
    for label, share in zip(histogram.names, shares.tolist(), strict=True):
        bar = "#" * round(share * _BAR_WIDTH)
        lines.append(f"  {label:>10}: {share:6.1%} {bar}".rstrip())
    return lines


def _token_text(token: ShownToken) -> str:
    if token.target is None:
        return token.text
    if token.target == token.text:
        return f"[{token.text}]"
    text = "MASK" if token.text == "[MASK]" else token.text
    return f"[{text}→{token.target}]"


def _first_rows(split: str, data: PretrainingData, vocab: list[str]) -> dict[str, np.ndarray]:
    """Return features of the first 10,000 records, by name; [records, …].

    Raises:
        UsageError: a shard is lost.
        InputError: a record is damaged.
    """
    try:
        records = _first_records(data.paths(split), data.compression)
        # Evaluation records are masked once, so that losses can be compared.
        if split == "train" and data.is_dynamic:
            return _unmasked(records, data, vocab)
        parsed = parse_records(tf.constant(records, tf.string, shape=[len(records)]), data)
        return {name: rows.numpy() for name, rows in parsed.items()}
    except (tf.errors.DataLossError, tf.errors.InvalidArgumentError, ValueError) as error:
        raise InputError(
            f"{data.directory}: damaged records ({str(error).splitlines()[0]}); "
            "make the data again with --overwrite"
        ) from None


def _first_records(shards: list[str], compression: str) -> list[bytes]:
    missing = [shard for shard in shards if not Path(shard).is_file()]
    if missing:
        raise UsageError(f"{missing[0]}: is gone; make the data again with --overwrite")
    records: list[bytes] = []
    compression_type = "GZIP" if compression == "gzip" else ""
    for shard in shards:
        dataset = tf.data.TFRecordDataset(shard, compression_type=compression_type)
        left = _RECORDS_READ - len(records)
        records += itertools.islice(dataset.as_numpy_iterator(), left)
    return records


def _unmasked(
    records: list[bytes], data: PretrainingData, vocab: list[str]
) -> dict[str, np.ndarray]:
    """Return features of records that training masks anew each time: they have no targets yet."""
    rows = parse_unmasked_records(records, data, sep_id=vocab.index("[SEP]"))
    nothing = np.zeros((len(records), 0), np.int32)
    return {
        "input_word_ids": rows.ids,
        "input_mask": rows.input_mask,
        "input_type_ids": rows.input_type_ids,
        "masked_lm_positions": nothing,
        "masked_lm_ids": nothing,
        "masked_lm_weights": nothing.astype(np.float32),
        "next_sentence_labels": rows.labels,
    }
