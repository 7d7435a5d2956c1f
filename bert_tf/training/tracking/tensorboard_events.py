"""TensorBoard's event files in `tensorboard/` of the run directory, a folder for each split."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from bert_tf.base.files import naming_file, replacing_file
from bert_tf.training.tracking.tracker import SPLITS, TrackedRun, numbers

Scalar = tuple[int, str]
# `tf.summary.scalar` needs the tensorboard package; what it writes does not.
_SCALAR = tf.compat.v1.SummaryMetadata(
    plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name="scalars"),
    data_class="DATA_CLASS_SCALAR",
)


def keep_scalars(directory: Path, steps: Collection[int]) -> set[Scalar]:
    """Removes scalars of other steps from event files, and events that a killed process cut off.

    Removes files left without scalars; returns (step, name) of the other scalars.
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
    """A `Tracker`; rewrites event files only to remove steps that the run does not resume after."""

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
