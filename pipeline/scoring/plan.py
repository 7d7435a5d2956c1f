"""What every worker of a scoring job knows, and where its intermediate files lie."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import BinaryIO

from bert_tf.data.tables.dialect import PLAIN, TableDialect
from bert_tf.data.tables.text_files import open_local
from bert_tf.engines.registry import EngineEntry
from pipeline.beam.storage import open_stored
from pipeline.scoring.columns import ScoringColumns
from pipeline.scoring.tables import ScoredTable


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScoringPlan:
    """A scoring job.

    Attributes:
        model: absolute path of an exported model.
        engine: what runs it.
        columns: what it reads and adds.
        tables: the inputs and outputs.
        dialect: how the inputs are written.
        folder: where relative paths of inputs begin; a worker may have another working folder.
        parts: absolute path of a folder for blocks and parts, on a disk that all workers share.
        identity: hash of all that decides a part's content but its block.
        block_rows: rows of a block.
        limit: rows read of each table; 0 for all.
        batch_tokens: tokens per batch, padding included.
    """

    model: str
    engine: EngineEntry
    columns: ScoringColumns
    tables: tuple[ScoredTable, ...]
    parts: Path
    identity: str
    block_rows: int
    limit: int
    batch_tokens: int
    dialect: TableDialect = PLAIN
    folder: str = dataclasses.field(default_factory=lambda: str(Path.cwd()))

    def open_table(self, path: str) -> BinaryIO:
        """Opens an input, of any storage, to read the bytes as they are stored.

        Raises:
            UsageError: the storage is not known or not installed, or the file cannot be opened.
        """
        return open_stored(path) if "://" in path else open_local(str(Path(self.folder) / path))

    def table_file(self, table: int) -> Path:
        """What was found in a table: written when it has been cut."""
        return self.parts / f"table-{table:05d}.json"

    def block_file(self, table: int, block: int) -> Path:
        """A block's rows, until it has been scored."""
        return self.parts / f"block-{table:05d}-{block:08d}.json"

    def progress_file(self, table: int, block: int) -> Path:
        """How many rows of a block have been scored, while it is."""
        return self.parts / f"block-{table:05d}-{block:08d}.progress"

    def part_file(self, table: int, block: int) -> Path:
        """A block's scored rows as they stand in the output."""
        return self.parts / f"part-{table:05d}-{block:08d}.rows"

    def rejects_file(self, table: int, block: int) -> Path:
        """A block's rejected rows."""
        return self.parts / f"part-{table:05d}-{block:08d}.rejects.jsonl"

    def done_file(self, table: int, block: int) -> Path:
        """Counts of a finished part: written last."""
        return self.parts / f"part-{table:05d}-{block:08d}.done.json"
