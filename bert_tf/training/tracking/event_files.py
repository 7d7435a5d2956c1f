"""TensorBoard's event files of a run that resumes from an earlier step."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import tensorflow as tf

from bert_tf.base.files import replacing_file

Scalar = tuple[int, str]


def keep_scalars(directory: Path, steps: Collection[int]) -> set[Scalar]:
    """Removes the scalars of other steps from the event files of a directory.

    A file that has none of them stays as it is; one that is left without any scalar goes, and so
    does an event that a killed process wrote in part.

    Args:
        directory: one of a run's, with the files of one writer after the other.
        steps: whose scalars stay.

    Returns:
        (step, name) of the scalars that are left.
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
    """The events of a file, and whether nothing follows them that is none."""
    events = []
    try:
        for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
            events.append(tf.compat.v1.Event.FromString(record))
    except tf.errors.DataLossError:
        return events, False
    return events, True


def _scalars(event: tf.compat.v1.Event) -> list[str]:
    return [value.tag for value in event.summary.value]
