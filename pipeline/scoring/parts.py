"""Scored blocks as files: each becomes a part of an output."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from bert_tf.base.atomic_files import write_text_atomically
from bert_tf.base.checksums import file_sha256
from bert_tf.base.sealed_json import read_if_sound, sealed
from bert_tf.data.tables.rejects import Reject, count_reasons, write_rejects
from bert_tf.serving.signatures import LOST_TOKENS
from bert_tf.tasks.base.prediction_rows import prediction_rows
from pipeline.scoring.blocks import BlockReference, RowBlock
from pipeline.scoring.output_rows import UnwritableRowError, part_line
from pipeline.scoring.plan import BlockFiles, ScoringPlan

ABSTAINED, ROWS_CUT, TOKENS_LOST = "rows_abstained", "rows_cut", "tokens_lost"


@dataclasses.dataclass(frozen=True)
class ScoredBlock:
    """A block and the model's outputs, [rows] by name."""

    block: RowBlock
    predicted: dict[str, np.ndarray]


def is_scored(reference: BlockReference, plan: ScoringPlan) -> bool:
    """Whether the part of this very block, by this very model, is finished and whole."""
    done = read_if_sound(reference.files.done)
    if done is None or (done["identity"], done["block"]) != (plan.identity, reference.sha256):
        return False
    try:
        return done["sha256"] == _sha256_of_part(reference.files)
    except FileNotFoundError:
        return False


def write_part(scored: ScoredBlock, plan: ScoringPlan) -> None:
    """Writes a block's rows as they will be in the output, its rejects and, last, its counts."""
    block = scored.block
    table = plan.tables[block.reference.table]
    lines, rejects = [], list(block.rejects)
    abstained = 0
    rows = prediction_rows(plan.columns.fields, scored.predicted)
    if plan.abstention is not None:
        plan.abstention.apply(rows)
    for index, predictions in enumerate(rows):
        try:
            line = part_line(
                block.raw_rows[index],
                None if block.cells is None else block.cells[index],
                predictions,
                delimiter=block.delimiter,
                source_format=table.source_format,
                output_format=table.output_format,
            )
            lines.append(line)
            if plan.abstention is not None:
                abstained += not plan.abstention.is_decided(predictions)
        except UnwritableRowError as error:
            rejects.append(Reject(table.source, block.lines[index], str(error)))
    text = "".join(f"{line}\n" for line in lines)
    write_text_atomically(block.reference.files.part, text)
    facts = {} if plan.abstention is None else {ABSTAINED: abstained}
    lost_tokens = scored.predicted.get(LOST_TOKENS)
    if lost_tokens is not None:
        facts |= {
            ROWS_CUT: int(np.count_nonzero(lost_tokens)),
            TOKENS_LOST: int(lost_tokens.sum()),
        }
    finish_part(block.reference, plan, rows_out=len(lines), rejects=rejects, facts=facts)


def finish_part(
    reference: BlockReference,
    plan: ScoringPlan,
    *,
    rows_out: int,
    rejects: list[Reject],
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Writes the rejects of a part that is written, and then its counts, which finish it.

    Args:
        reference: the part's block.
        plan: the job.
        rows_out: rows of the part.
        rejects: rows that are not in it, in any order.
        facts: what else is noted with the counts.
    """
    files = reference.files
    write_rejects(files.rejects, sorted(rejects, key=lambda reject: reject.line))
    done = {
        **(facts or {}),
        "identity": plan.identity,
        "block": reference.sha256,
        "rows_out": rows_out,
        "rejected": count_reasons(rejects),
        "sha256": _sha256_of_part(files),
    }
    write_text_atomically(files.done, sealed(done))
    files.rows.unlink(missing_ok=True)
    files.progress.unlink(missing_ok=True)


def _sha256_of_part(files: BlockFiles) -> list[str]:
    return [file_sha256(path) for path in (files.part, files.rejects)]
