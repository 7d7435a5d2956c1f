"""TFRecord shards in blocks that can be read independently.

A frame is the length of the record (uint64), the checksum of the length (uint32), the record, and
its checksum (uint32), see tensorflow/core/lib/io/record_writer.h. The index needs only the lengths,
so it jumps from frame to frame; checksums are verified when a block is read.
"""

from __future__ import annotations

import dataclasses
import gzip
import itertools
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.base.compiled import numba
from bert_tf.base.errors import InputError, UsageError
from bert_tf.data.records.example_bytes import FRAME_HEAD, FRAME_TAIL, masked_crcs

# Records that are read and shuffled together: enough for good shuffling, since they were shuffled
# when they were made, and few enough to resume quickly anywhere in an epoch.
BLOCK_RECORDS = 1024
_INDEXING_THREADS = 8


@dataclasses.dataclass(frozen=True)
class RecordBlock:
    """A run of records of one shard.

    Attributes:
        shard: path of the file.
        start, end: range of bytes in the uncompressed content; `end` is exclusive.
        first_record: number of the first record in the shard.
        records: number of records.
        measures: [records, …], result of the `measure` of `index_shards` for these records; None
            without it.
    """

    shard: str
    start: int
    end: int
    first_record: int
    records: int
    measures: Any = dataclasses.field(default=None, compare=False)


def index_shards(
    shards: list[str],
    *,
    compression: str = "none",
    block_records: int = BLOCK_RECORDS,
    measure: Callable[[np.ndarray, int], np.ndarray] | None = None,
) -> list[RecordBlock]:
    """Find the blocks of all shards from the frames of the records.

    A compressed shard is one block, because reading cannot start in its middle.

    Args:
        shards: paths, local or of a file system that TensorFlow knows (gs://, hdfs://).
        compression: "none" or "gzip".
        block_records: records of a block.
        measure: gets the frames of a shard, uint8, whose checksums are not verified yet, and their
            number; returns an array [records, …].

    Returns:
        Blocks in the order of the shards. Empty shards have none.

    Raises:
        UsageError: a shard is missing.
        InputError: a shard cannot be read, is cut off, or has other content than TFRecords.
    """

    def index(shard: str) -> list[RecordBlock]:
        content = _content(shard, compression)
        records_per_block = block_records if compression == "none" else max(1, len(content))
        starts, records, damage = _block_starts(content, records_per_block)
        if damage >= 0:
            raise InputError(
                f"{shard}: record {records} (at byte {damage}) is cut off or damaged; "
                "make the data again with --overwrite"
            )
        measures = None if measure is None else measure(content, records)
        firsts = range(0, records, records_per_block)
        blocks = []
        for start, end, first in zip(starts[:-1], starts[1:], firsts, strict=True):
            count = min(records_per_block, records - first)
            blocks.append(
                RecordBlock(
                    shard=shard,
                    start=int(start),
                    end=int(end),
                    first_record=first,
                    records=count,
                    measures=None if measures is None else measures[first : first + count],
                )
            )
        return blocks

    with ThreadPoolExecutor(max_workers=_INDEXING_THREADS) as threads:
        return [block for blocks in threads.map(index, shards) for block in blocks]


def read_records(block: RecordBlock, *, compression: str = "none") -> list[bytes]:
    """Read the records of a block and check each against its checksum.

    Raises:
        InputError: a record is damaged, or the shard has changed since it was indexed.
    """
    if compression == "none":
        with tf.io.gfile.GFile(block.shard, "rb") as stream:
            stream.seek(block.start)
            content = np.frombuffer(stream.read(block.end - block.start), np.uint8)
    else:
        content = _content(block.shard, compression)[block.start : block.end]
    starts, records, damage = _block_starts(content, 1)
    if damage >= 0 or records != block.records:
        raise InputError(f"{block.shard}: the file has changed while it was being read")
    data = content.tobytes()
    frames = itertools.pairwise(starts)
    contents = [data[start + FRAME_HEAD : end - FRAME_TAIL] for start, end in frames]
    tails = np.array(starts[1:], np.int64)[:, None] + np.arange(-FRAME_TAIL, 0)
    is_wrong = masked_crcs(contents) != content[tails].view("<u4")[:, 0]
    if is_wrong.any():
        raise InputError(
            f"{block.shard}: record {block.first_record + int(np.argmax(is_wrong))} is damaged "
            "(its checksum is wrong); make the data again with --overwrite"
        )
    return contents


@numba.njit(nogil=True, cache=True)
def _block_starts(content, block_records):
    """Walk over the frames.

    Returns:
        Offsets of every `block_records`-th frame and of the end, int64; the number of complete
        frames; the offset of the first incomplete frame, -1 if all are complete.
    """
    size = content.size
    starts = [np.int64(0) for _ in range(0)]  # empty; tells Numba the type of its elements
    position = np.int64(0)
    records = 0
    damage = np.int64(-1)
    while position < size:
        length = np.int64(0)
        if position + FRAME_HEAD <= size:
            for byte in range(8):
                length |= np.int64(content[position + byte]) << (8 * byte)
        end = position + FRAME_HEAD + length + FRAME_TAIL
        if position + FRAME_HEAD > size or length < 0 or length > size or end > size:
            damage = position
            break
        if records % block_records == 0:
            starts.append(position)
        records += 1
        position = end
    starts.append(position)
    return starts, records, damage


def _content(shard: str, compression: str) -> np.ndarray:
    """Return the uncompressed content, uint8; a local uncompressed file is mapped, not read."""
    try:
        if compression == "none" and "://" not in shard:
            if Path(shard).stat().st_size == 0:
                return np.zeros(0, np.uint8)
            return np.memmap(shard, dtype=np.uint8, mode="r")
        with tf.io.gfile.GFile(shard, "rb") as stream:
            data = stream.read()
        if compression == "gzip":
            data = gzip.decompress(data)
        return np.frombuffer(data, np.uint8)
    except (FileNotFoundError, tf.errors.NotFoundError):
        raise UsageError(f"{shard}: no such file, but the manifest of the data names it") from None
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{shard}: cannot be read ({error})") from None
