"""Scored blocks as files: each becomes a part of an output."""

from __future__ import annotations

import dataclasses
import functools
import json
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bert_tf.base.checksums import file_sha256
from bert_tf.base.files import write_text_atomically
from bert_tf.base.json_files import read_if_sound, write_sealed
from bert_tf.config.bert_file import read_task
from bert_tf.data.tables.rejects import Reject, count_reasons, write_rejects
from bert_tf.data.text.host_wordpiece import HostTokenizer
from bert_tf.data.text.vocabulary_files import read_folder_vocabulary
from bert_tf.embeddings.settings import EMBEDDING, EmbedderSettings
from bert_tf.engines.engine import Engine
from bert_tf.serving.signatures import LOST_MASKS, LOST_TOKENS, WORDS_WITHOUT_TOKENS
from bert_tf.tasks.base.prediction_rows import Abstention, prediction_rows
from bert_tf.tasks.profile.distance import TrainingDistance
from bert_tf.tasks.profile.drift import Counts, DriftReference
from bert_tf.tasks.profile.profile import training_distance
from bert_tf.tasks.profile.texts import joined_texts, text_counts
from pipeline.beam.progress import Progress, report_progress
from pipeline.scoring.blocks import BlockReference, RowBlock
from pipeline.scoring.output_rows import TSV_BREAKS, UnwritableRowError, part_line
from pipeline.scoring.plan import BlockFiles, ScoringPlan


class Fact(StrEnum):
    """Notes on a part, mostly numbers to add up."""

    ABSTAINED = "rows_abstained"
    FAR = "rows_far"  # of these, by the distance from the training rows
    # of sets of labels
    SET_LABELS = "labels_in_sets"
    SETS_EMPTY = "rows_with_empty_set"
    # too long for the model
    ROWS_CUT = "rows_cut"
    TOKENS_LOST = "tokens_lost"
    MASKS_LOST = "masks_lost"  # of texts with too many masks
    WORDS_WITHOUT_TOKENS = "words_without_tokens"  # of rows of words
    # of texts to embed
    TOKENS = "tokens"
    ROWS_TRUNCATED = "rows_truncated"
    TOKENS_TRUNCATED = "tokens_truncated"
    # of the model's batches
    BATCH_TOKENS = "batch_tokens"
    PADDED_TOKENS = "padded_tokens"
    KINDS = "kinds"  # see `kinds_of`
    DRIFT = "drift"  # see `drift_counts`
    SCORES = "scores"  # rows by the probability of their prediction, in `SCORE_BINS` steps


@dataclasses.dataclass(frozen=True)
class ScoredBlock:
    """Rows with the predictions of a model.

    Attributes:
        block: the rows.
        predicted: the model's outputs by name, [rows, …].
        tokens: number of tokens of the model's batches, without padding and with it; 0 if the
            engine does not count them.
    """

    block: RowBlock
    predicted: dict[str, np.ndarray]
    tokens: tuple[int, int] = (0, 0)


SCORE_BINS = 20  # of probabilities from 0 to 1, for a page
# Rows of a block whose texts are compared with those of training: half of the default block. They
# are tokenized once more, which takes about 1% of the time of a small model on a processor.
_MOST_COUNTED = 4096

WritePart = Callable[[ScoredBlock, ScoringPlan], None]


def finished_rows(reference: BlockReference, plan: ScoringPlan) -> int | None:
    """Return the number of rows of a finished part, rejects included; None if it is not finished.

    A part of another model, other settings or other rows does not count.

    Args:
        reference: the block.
        plan: with the identity of the part's model and settings.
    """
    done = read_if_sound(reference.files.done)
    if done is None or (done["identity"], done["block"]) != (plan.identity, reference.sha256):
        return None
    try:
        is_whole = done["sha256"] == _sha256_of_part(reference.files)
    except FileNotFoundError:
        return None
    left_out = 0 if plan.columns.keeps_rejected else sum(done["rejected"].values())
    return int(done["rows_out"] + left_out) if is_whole else None


def write_part(scored: ScoredBlock, plan: ScoringPlan) -> None:
    """Write a block's rows as they will be in the output, its rejects and, last, its counts.

    Args:
        scored: the rows and their predictions.
        plan: with the columns to add.
    """
    block = scored.block
    table = plan.tables[block.reference.table]
    lines: list[str] = []
    rejects = list(block.rejects)
    written: list[int] = []  # places in the block of the rows of `lines`
    unwritten: list[int] = []  # places in the block of the rejects after the block's own
    abstained = 0
    predicted = plan.columns.by_words(block.words, scored.predicted)
    rows = prediction_rows(plan.columns.fields, predicted)
    facts = {} if plan.abstention is None else abstain(plan, plan.abstention, rows, block.texts)
    added = plan.columns.cells(rows, scored.predicted, block.texts, table.output_format)
    faults = plan.columns.faults_of(scored.predicted)
    for index, cells in enumerate(added):
        if index in faults:
            rejects.append(Reject.at(table.source, block.place(index), *faults[index]))
            unwritten.append(index)
            continue
        try:
            line = part_line(
                table,
                block.raw_rows[index],
                None if block.cells is None else block.cells[index],
                cells,
                delimiter=block.delimiter,
                escapes=plan.escapes_formulas,
            )
            lines.append(line)
            written.append(index)
            if plan.abstention is not None and not plan.abstention.is_decided(rows[index]):
                abstained += 1
        except UnwritableRowError as error:
            rejects.append(Reject.at(table.source, block.place(index), str(error)))
            unwritten.append(index)
    if plan.columns.keeps_rejected:
        numbered = [(block.lines[index], line) for index, line in zip(written, lines, strict=True)]
        numbered += _rejected_lines(block, rejects, unwritten, plan)
        lines = [line for _, line in sorted(numbered, key=operator.itemgetter(0))]
    text = "".join(f"{line}\n" for line in lines)
    write_text_atomically(block.reference.files.part, text)
    if plan.marked is not None:
        part = block.reference.files.part
        places = [block.place(row) for row in written]
        plan.marked.write(part, lines, written, scored.predicted, block.texts, places)
    if plan.abstention is not None:
        facts[Fact.ABSTAINED] = abstained
    facts |= _facts_of(scored, plan, added, predicted)
    finish_part(scored, plan, rows_out=len(lines), rejects=rejects, facts=facts)


def _facts_of(
    scored: ScoredBlock,
    plan: ScoringPlan,
    added: Sequence[Mapping[str, Any]],
    predicted: Mapping[str, np.ndarray],
) -> dict[str, Any]:
    """Return the facts on the rows of a block and their predictions.

    Args:
        scored: the rows and their predictions.
        plan: with the settings that need facts.
        added: cells of each row.
        predicted: outputs by name, for rows as they are in the table: texts or words.
    """
    block = scored.block
    table = plan.tables[block.reference.table]
    facts: dict[str, Any] = {}
    if plan.columns.label_sets is not None:
        sizes = [len(cells[plan.columns.set_name]) for cells in added]
        facts |= {Fact.SET_LABELS: sum(sizes), Fact.SETS_EMPTY: sizes.count(0)}
    if (table.source_format, table.output_format) == ("jsonl", "parquet"):
        rejected = [raw for raw, _ in block.rejected_rows]
        facts[Fact.KINDS] = kinds_of(map(json.loads, [*block.raw_rows, *rejected]))
    if plan.decision is not None and plan.decision.score in scored.predicted:
        counts, _ = np.histogram(scored.predicted[plan.decision.score], SCORE_BINS, (0.0, 1.0))
        facts[Fact.SCORES] = counts.tolist()
    if plan.drift is not None and added:
        facts[Fact.DRIFT] = drift_counts(plan, plan.drift, scored).as_json()
    lost = scored.predicted.get(LOST_TOKENS)
    if lost is not None:
        facts |= {Fact.ROWS_CUT: int(np.count_nonzero(lost)), Fact.TOKENS_LOST: int(lost.sum())}
    lost_masks = scored.predicted.get(LOST_MASKS)
    if lost_masks is not None:
        facts[Fact.MASKS_LOST] = int(lost_masks.sum())
    untagged = predicted.get(WORDS_WITHOUT_TOKENS)
    if untagged is not None:
        facts[Fact.WORDS_WITHOUT_TOKENS] = int(untagged.sum())
    return facts


def abstain(
    plan: ScoringPlan,
    abstention: Abstention,
    rows: list[dict[str, Any]],
    texts: Mapping[str, Sequence[Any]],
) -> dict[str, Any]:
    """Remove predictions from rows, ready for JSON; return facts on them.

    Args:
        plan: with the model, whose vectors show which texts are far.
        abstention: limits below or beyond which predictions are removed.
        rows: predictions, changed in place.
        texts: of the rows by input.
    """
    abstention.apply(rows)
    if abstention.beyond is None:
        return {}
    embedder, distance = _distance(plan.model)
    embedded = embedder.predict({"text": joined_texts(texts)}, batch_tokens=plan.batch_tokens)
    return {Fact.FAR: abstention.apply_far(rows, distance.distances(embedded[EMBEDDING]))}


@functools.lru_cache(maxsize=1)
def _distance(model: str) -> tuple[Engine, TrainingDistance]:
    """Load the measure of distance from a model's training rows, once in a process."""
    embedder = EmbedderSettings.of_model(read_task(model) or {}).load(model)
    return embedder, training_distance(model, "--abstain-far")


def drift_counts(plan: ScoringPlan, reference: DriftReference, scored: ScoredBlock) -> Counts:
    """Count the measures compared with the training rows, of evenly spread rows of a block."""
    texts = scored.block.texts
    number = len(next(iter(texts.values())))
    kept = np.unique(np.linspace(0, number - 1, min(number, _MOST_COUNTED)).astype(np.int64))
    counts = np.zeros(0, np.int64)
    if reference.texts is not None:
        chosen = {name: [column[row] for row in kept] for name, column in texts.items()}
        counts = text_counts(reference.texts.measures, chosen, _tokenizer(plan.model))
    predicted = np.zeros(0, np.int64)
    if plan.decision is not None:
        label, score = plan.decision
        predicted = reference.counts_of_predictions(
            scored.predicted[label], scored.predicted[score]
        )
    return Counts(number, predicted, len(kept), counts)


@functools.lru_cache(maxsize=1)
def _tokenizer(model: str) -> HostTokenizer:
    """Make the tokenizer of a model, once in a process."""
    vocabulary = read_folder_vocabulary(Path(model))
    return HostTokenizer(vocabulary.vocab, lowercase=vocabulary.lowercase)


def _rejected_lines(
    block: RowBlock, rejects: Sequence[Reject], unwritten: Sequence[int], plan: ScoringPlan
) -> Iterator[tuple[int, str]]:
    """Yield the line number of each rejected row, and the row with empty predictions.

    Args:
        block: with the rows of its own rejects.
        rejects: the block's own, then the rows whose cells or predictions cannot be written.
        unwritten: places of the latter among the rows of the block.
        plan: with the tables and columns.
    """
    table = plan.tables[block.reference.table]
    cells_of_rows = block.cells or [{} for _ in block.raw_rows]
    rows = list(block.rejected_rows)
    rows += [(block.raw_rows[row], cells_of_rows[row]) for row in unwritten]
    write_line = functools.partial(
        part_line, delimiter=block.delimiter, escapes=plan.escapes_formulas
    )
    for reject, (raw, cells) in zip(rejects, rows, strict=True):
        reason = reject.reason
        if reject.detail:
            reason += f" ({reject.detail})"
        added = plan.columns.rejected_cells(TSV_BREAKS.sub(" ", reason), table.output_format)
        if not added.keys().isdisjoint(cells):  # it has a column of a prediction
            raw = "{}"
            cells = {}
        try:
            line = write_line(table, raw, None if block.cells is None else cells, added)
        except UnwritableRowError:
            line = write_line(table, "{}", dict.fromkeys(cells, ""), added)
        yield reject.line, line


def finish_part(
    scored: ScoredBlock,
    plan: ScoringPlan,
    *,
    rows_out: int,
    rejects: list[Reject],
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Write the rejects of a written part, then its counts, which finish it.

    Args:
        scored: the rows of the part.
        plan: with the identity to note.
        rows_out: number of rows of the part.
        rejects: rows that are not in it.
        facts: further notes.
    """
    reference = scored.block.reference
    files = reference.files
    write_rejects(files.rejects, sorted(rejects, key=lambda reject: reject.line))
    done = {
        **(facts or {}),
        "identity": plan.identity,
        "block": reference.sha256,
        "rows_out": rows_out,
        "rejected": count_reasons(rejects),
        Fact.BATCH_TOKENS: scored.tokens[0],
        Fact.PADDED_TOKENS: scored.tokens[1],
        "sha256": _sha256_of_part(files),
    }
    write_sealed(files.done, done)
    files.rows.unlink(missing_ok=True)
    report_progress(Progress.ROWS, len(scored.block.rejects))


def _sha256_of_part(files: BlockFiles) -> list[str]:
    """Return the SHA-256 of a part's rows and of its rejects."""
    return [file_sha256(path) for path in (files.part, files.rejects)]


_TYPES = {  # of columns, by their kinds; others become text
    ("boolean",): pa.bool_(),
    ("integer",): pa.int64(),
    ("integer", "long"): pa.int64(),
    ("long",): pa.int64(),
    ("integer", "number"): pa.float64(),
    ("number",): pa.float64(),
}
# Of integers that float64 has exactly. No type has larger ones and fractions in one column.
_LARGEST_EXACT = 1 << 53
_LARGEST_INTEGER = 1 << 63  # of int64


def kinds_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the kinds of values in each column, sorted; a column of nulls has none."""
    kinds: dict[str, set[str]] = {}
    for row in rows:
        for key, value in row.items():
            kinds_of_key = kinds.setdefault(key, set())
            if value is not None:
                kinds_of_key.add(_kind(value))
    return {key: sorted(kinds_of_key) for key, kinds_of_key in kinds.items()}


def column_types(parts: Iterable[Mapping[str, Iterable[str]]]) -> dict[str, pa.DataType]:
    """Return the type of each column, in order of first appearance.

    Texts, numbers and truth values keep their type. Mixed columns, lists and objects become text:
    texts as they are, the rest as JSON.

    Args:
        parts: kinds by column of each part, see `kinds_of`.
    """
    kinds: dict[str, set[str]] = {}
    for part in parts:
        for key, kinds_of_key in part.items():
            kinds.setdefault(key, set()).update(kinds_of_key)
    return {key: _TYPES.get(tuple(sorted(names)), pa.string()) for key, names in kinds.items()}


def column_array(rows: Iterable[Mapping[str, Any]], key: str, type_: pa.DataType) -> pa.Array:
    """Return a column of JSON objects as an array of a type of `column_types`."""
    values = []
    for row in rows:
        value = row.get(key)
        is_text = value is None or isinstance(value, str)
        if type_ == pa.string() and not is_text:
            value = json.dumps(value, ensure_ascii=False)
        values.append(value)
    return pa.array(values, type_)


def _kind(value: Any) -> str:
    """Return the kind of a JSON value that is not null."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        if abs(value) <= _LARGEST_EXACT:
            return "integer"
        return "long" if -_LARGEST_INTEGER <= value < _LARGEST_INTEGER else "other"
    if isinstance(value, float):
        return "number"
    return "text" if isinstance(value, str) else "other"
