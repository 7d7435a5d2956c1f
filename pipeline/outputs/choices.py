"""Values that a job chose for keys not given, kept when its command is run again.

A key such as `epochs` of `finetune` is None in the config until the job has read its rows. The
values that it then chooses are stored like given ones, and their keys as `chosen`: in the manifest
of a finished output, and beside the inputs of an unfinished one. A repeated command takes them over
before it compares its config, so a later release that chooses otherwise still continues a run as it
began. Outputs without `chosen` are of a release that chose nothing: a key that is not given then
means the default of that release.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bert_tf.base.json_files import read_if_sound
from bert_tf.config.section import Section, SectionType, former_defaults, plain_values
from pipeline.outputs.job_folder import JobFolder
from pipeline.outputs.manifest import INPUTS
from pipeline.outputs.place import OutputPlace

CHOSEN = "chosen"


def open_keys(config: Section) -> tuple[str, ...]:
    """Return the keys whose values are left to the job."""
    return tuple(key for key in former_defaults(config) if getattr(config, key) is None)


def with_kept_choices(config: SectionType) -> SectionType:
    """Return the config with the choices that an output of its folder, finished or not, has made.

    Keys without a kept value stay open: the output was made with a given value, which the check of
    the job then tells apart, or the job was killed before it had read its rows.

    Args:
        config: of the command as it is given now.

    Raises:
        InputError: the manifest is damaged.
    """
    output = Path(str(config.as_dict()["output"]))
    keys = open_keys(config)
    if not keys or not output.is_dir():
        return config
    folder = JobFolder(OutputPlace(output=str(output), is_directory=True), config.section_name)
    if folder.manifest is not None:
        saved = folder.manifest["config"]
        return dataclasses.replace(config, **_kept(config, saved, folder.manifest))
    if folder.marker is None:
        return config
    saved = plain_values(type(config), folder.marker.get(config.section_name, {}))
    return dataclasses.replace(config, **_kept(config, saved, read_if_sound(output / INPUTS) or {}))


def _kept(config: Section, saved: Mapping[str, Any], notes: Mapping[str, Any]) -> dict[str, Any]:
    """Return values for open keys.

    Args:
        config: of the command as it is given now.
        saved: values of the output's config.
        notes: say which keys of the saved config were chosen.
    """
    former = former_defaults(config)
    keys = open_keys(config)
    if CHOSEN in notes:
        return {key: saved[key] for key in keys if key in notes[CHOSEN]}
    return {key: former[key] for key in keys if saved.get(key, former[key]) == former[key]}
