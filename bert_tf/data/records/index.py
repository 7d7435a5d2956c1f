"""TFRecord shards by block; frames are as in tensorflow/core/lib/io/record_writer.h."""

from __future__ import annotations

import dataclasses
import gzip
import itertools
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numba
import numpy as np
import tensorflow as tf

from bert_tf.base.errors import InputError, UsageError
from bert_tf.data.records.example_bytes import FRAME_HEAD, FRAME_TAIL, masked_crcs

BLOCK_RECORDS = 1024


@dataclasses.dataclass(frozen=True)
class RecordBlock:
    shard: str  # the file
    start: int  # where its bytes begin in the uncompressed content
    end: int  # where they end, exclusive
    first_record: int  # number of its first record in the shard
    records: int  # how many there are
    # [records, …], measures of `index_shards`; None unless it was given a function for them
    measures: Any = dataclasses.field(default=None, compare=False)


def index_shards(
    shards: list[str],
    *,
    compression: str = "none",
    block_records: int = BLOCK_RECORDS,
    measure: Callable[[np.ndarray, int], np.ndarray] | None = None,
) -> list[RecordBlock]:
    """Find the blocks of all shards from the frames; a compressed shard is one block."""

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
        return [
            RecordBlock(
                shard,
                int(start),
                int(end),
                first,
                min(records_per_block, records - first),
                None if measures is None else measures[first : first + records_per_block],
            )
            for start, end, first in zip(starts[:-1], starts[1:], firsts, strict=True)
        ]

    with ThreadPoolExecutor(max_workers=8) as threads:
        return [block for blocks in threads.map(index, shards) for block in blocks]


def read_records(block: RecordBlock, *, compression: str = "none") -> list[bytes]:
    """Read the records of a block and check each against its CRC."""
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
    found = [data[start + FRAME_HEAD : end - FRAME_TAIL] for start, end in frames]
    tails = np.array(starts[1:], np.int64)[:, None] + np.arange(-FRAME_TAIL, 0)
    is_wrong = masked_crcs(found) != content[tails].view("<u4")[:, 0]
    if is_wrong.any():
        raise InputError(
            f"{block.shard}: record {block.first_record + int(np.argmax(is_wrong))} is damaged "
            "(its checksum is wrong); make the data again with --overwrite"
        )
    return found


@numba.njit(nogil=True, cache=True)
def _block_starts(content, block_records):
    """Return starts of blocks and the end, the number of frames, the first damaged byte or -1."""
    size = content.size
    starts = [np.int64(0) for _ in range(0)]
    position = np.int64(0)
    records = 0
    damage = np.int64(-1)
    while position < size:
        length = np.int64(0)
        if position + 12 <= size:
            for byte in range(8):
                length |= np.int64(content[position + byte]) << (8 * byte)
        end = position + 12 + length + 4
        if position + 12 > size or length < 0 or length > size or end > size:
            damage = position
            break
        if records % block_records == 0:
            starts.append(position)
        records += 1
        position = end
    starts.append(position)
    return starts, records, damage


def _content(shard: str, compression: str) -> np.ndarray:
    """The uncompressed content, uint8; a local file is mapped, not read."""
    try:
        if compression == "none" and "://" not in shard:
            if Path(shard).stat().st_size == 0:
                return np.zeros(0, np.uint8)
            return np.memmap(shard, dtype=np.uint8, mode="r")
        with tf.io.gfile.GFile(shard, "rb") as stream:
            data = stream.read()
        return np.frombuffer(gzip.decompress(data) if compression == "gzip" else data, np.uint8)
    except (FileNotFoundError, tf.errors.NotFoundError):
        raise UsageError(f"{shard}: no such file, but the manifest of the data names it") from None
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{shard}: cannot be read ({error})") from None
