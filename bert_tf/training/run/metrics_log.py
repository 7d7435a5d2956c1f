"""metrics.jsonl and the TensorBoard event files of a run."""

from __future__ import annotations

import json
import os
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from bert_tf.base.atomic_files import write_text_atomically
from bert_tf.base.storage_errors import naming_file
from bert_tf.training.run.event_files import Scalar, keep_scalars
from bert_tf.training.run.metrics_file import SPLITS, read_metrics

_NOT_PLOTTED = ("step", "split", "time")
# `tf.summary.scalar` needs the tensorboard package; what it writes does not.
_SCALAR = tf.compat.v1.SummaryMetadata(
    plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name="scalars"),
    data_class="DATA_CLASS_SCALAR",
)


class MetricsLog:
    """Writes every line to metrics.jsonl and its numbers to TensorBoard.

    A line holds `step`, `split` ("train" or "eval"), `time` (seconds of training so far), and
    numbers by name.

    Args:
        run_directory: where `metrics.jsonl` and `tensorboard/` are.
        keep_until: the newest step of each split whose lines stay; those of later steps, of splits
            that it does not name, and a last line that was cut off by a crash are removed. So are
            the numbers of these lines in event files, which are not touched otherwise; what a
            killed process had no time to write there is written again.

    Raises:
        InputError: a line in the middle of metrics.jsonl is damaged.
    """

    def __init__(self, run_directory: Path, *, keep_until: Mapping[str, int]):
        self._path = run_directory / "metrics.jsonl"
        self._events = events = run_directory / "tensorboard"
        kept = [
            line
            for line in read_metrics(self._path)
            if line["step"] <= keep_until.get(line["split"], -1)
        ]
        write_text_atomically(self._path, "".join(json.dumps(line) + "\n" for line in kept))
        plotted = {
            split: keep_scalars(
                events / split, {line["step"] for line in kept if line["split"] == split}
            )
            for split in SPLITS
        }
        with naming_file(events):
            self._writers = {
                split: tf.summary.create_file_writer(str(events / split), flush_millis=10_000)
                for split in SPLITS
            }
        for line in kept:
            self._plot(line, besides=plotted[line["split"]])
        self._stream = self._path.open("a", encoding="utf-8")

    def write(self, line: dict[str, Any]) -> None:
        """Adds one line."""
        with naming_file(self._path):
            self._stream.write(json.dumps(line) + "\n")
            self._stream.flush()
        self._plot(line)

    def close(self) -> None:
        """Flushes and closes the files."""
        with naming_file(self._path):
            os.fsync(self._stream.fileno())
            self._stream.close()
        with naming_file(self._events):
            for writer in self._writers.values():
                writer.close()

    def _plot(self, line: dict[str, Any], besides: Container[Scalar] = ()) -> None:
        writer = self._writers[line["split"]]
        with naming_file(self._events), writer.as_default(step=line["step"]):
            for name, value in line.items():
                if name not in _NOT_PLOTTED and (line["step"], name) not in besides:
                    tf.summary.write(name, tf.constant(value, tf.float32), metadata=_SCALAR)
