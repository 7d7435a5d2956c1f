"""TensorBoard's event files in `tensorboard/` of the run directory, a folder for each split."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from bert_tf.base.files import naming_file, replacing_file
from bert_tf.training.tracking.tracker import SPLITS, TrackedRun, numbers

Scalar = tuple[int, str]  # step and name
# The metadata that `tf.summary.scalar` writes; the function itself needs the tensorboard package.
_SCALAR = tf.compat.v1.SummaryMetadata(
    plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name="scalars"),
    data_class="DATA_CLASS_SCALAR",
)


def keep_scalars(directory: Path, steps: Collection[int]) -> set[Scalar]:
    """Remove scalars of other steps from event files, and events that a killed process cut off.

    Files left without scalars are removed. Files with nothing to remove are not touched.

    Args:
        directory: event files of one split, written by one process after the other.
        steps: steps whose scalars stay.

    Returns:
        (step, name) of the remaining scalars.
    """
    kept: set[Scalar] = set()
    for path in sorted(directory.glob("events.out.tfevents.*")):
        events, is_whole = _read_events(path)
        staying = [event for event in events if not _scalars(event) or event.step in steps]
        scalars = {(event.step, name) for event in staying for name in _scalars(event)}
        if not scalars:
            path.unlink()
        elif not is_whole or len(staying) < len(events):
            with replacing_file(path) as aside, tf.io.TFRecordWriter(str(aside)) as writer:
                for event in staying:
                    writer.write(event.SerializeToString())
        kept |= scalars
    return kept


def _read_events(path: Path) -> tuple[list[tf.compat.v1.Event], bool]:
    """Return the events of a file, and whether the file ends with a complete event."""
    events = []
    try:
        for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
            events.append(tf.compat.v1.Event.FromString(record))
    except tf.errors.DataLossError:
        return events, False
    return events, True


def _scalars(event: tf.compat.v1.Event) -> list[str]:
    return [value.tag for value in event.summary.value]


class EventFiles:
    """A `Tracker` that writes TensorBoard's event files.

    Rewrites event files only to remove steps after the checkpoint that the run resumes from. Lines
    of metrics.jsonl that a killed process did not write to them are written again.
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
        return self._newest

    def write(self, line: Mapping[str, Any], seconds: float) -> None:
        self._write(line)

    def close(self, *, is_finished: bool) -> None:
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
