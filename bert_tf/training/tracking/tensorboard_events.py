"""TensorBoard's event files in `tensorboard/` of the run directory, a folder for each split."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

import tensorflow as tf

from bert_tf.base.files import naming_file
from bert_tf.training.tracking.event_files import Scalar, keep_scalars
from bert_tf.training.tracking.tracker import SPLITS, TrackedRun, numbers

# `tf.summary.scalar` needs the tensorboard package; what it writes does not.
_SCALAR = tf.compat.v1.SummaryMetadata(
    plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name="scalars"),
    data_class="DATA_CLASS_SCALAR",
)


class EventFiles:
    """A `Tracker`.

    Numbers of lines that the run does not resume after are removed from event files, which are not
    touched otherwise; what a killed process had no time to write there is written again.
    """

    def __init__(self, run: TrackedRun):
        self._folder = folder = run.directory / "tensorboard"
        steps = {
            split: {line["step"] for line in run.lines if line["split"] == split}
            for split in SPLITS
        }
        with naming_file(folder):
            there = {split: keep_scalars(folder / split, steps[split]) for split in SPLITS}
            self._writers = {
                split: tf.summary.create_file_writer(str(folder / split), flush_millis=10_000)
                for split in SPLITS
            }
        for line in run.lines:
            self._write(line, besides=there[line["split"]])
        self._newest = {split: max(each) for split, each in steps.items() if each}

    def newest_steps(self) -> Mapping[str, int]:
        """See `Tracker`."""
        return self._newest

    def write(self, line: Mapping[str, Any], seconds: float) -> None:
        """See `Tracker`; TensorFlow's writer takes the time for itself."""
        self._write(line)

    def close(self, *, is_finished: bool) -> None:
        """See `Tracker`."""
        with naming_file(self._folder):
            for writer in self._writers.values():
                writer.close()

    def _write(self, line: Mapping[str, Any], besides: Container[Scalar] = ()) -> None:
        writer = self._writers[line["split"]]
        with naming_file(self._folder), writer.as_default(step=line["step"]):
            for name, value in numbers(line).items():
                if (line["step"], name) not in besides:
                    tf.summary.write(name, tf.constant(value, tf.float32), metadata=_SCALAR)


open_tracker = EventFiles
