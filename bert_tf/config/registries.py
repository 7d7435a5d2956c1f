"""Choices of config keys that other rooms implement: engines, formats, trackers, tasks.

`bert_tf/__init__.py` fills the tables first; an entry's module is imported when it is chosen.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping
from typing import Protocol

AUTO = "auto"
FLOAT32, BFLOAT16, FLOAT16, INT8 = "float32", "bfloat16", "float16", "int8"
PRECISIONS = (AUTO, FLOAT32, BFLOAT16, FLOAT16, INT8)
FOLDER, SERVING = "folder", "serving"
TEXT, IDS = "text", "ids"
TENSORBOARD = "tensorboard"


class Installable(Protocol):
    """An engine or a tracker that need not be installed to be known."""

    def check_installed(self) -> None:
        """Raises UsageError if packages are missing; imports none."""


class Format(Installable, Protocol):
    """A format of exported models; see `bert_tf.export.registry.FormatEntry`."""

    @property
    def title(self) -> str: ...

    @property
    def has_pooling(self) -> bool: ...

    @property
    def quantizer(self) -> str | None: ...

    @property
    def options(self) -> tuple[str, ...]: ...


@dataclasses.dataclass(kw_only=True)
class Registries:
    """The tables by name; tests may add entries at any time."""

    engines: Mapping[str, Installable] = dataclasses.field(default_factory=dict)
    formats: Mapping[str, Format] = dataclasses.field(default_factory=dict)
    trackers: Mapping[str, Installable] = dataclasses.field(default_factory=dict)
    pretrained_tasks: Mapping[str, str] = dataclasses.field(default_factory=dict)


REGISTRIES = Registries()


class EngineChoices(Collection[str]):
    """The values of a config key `engine`: `auto` and the engines registered so far."""

    def __contains__(self, name: object) -> bool:
        return name == AUTO or name in REGISTRIES.engines

    def __iter__(self) -> Iterator[str]:
        return iter((AUTO, *REGISTRIES.engines))

    def __len__(self) -> int:
        return 1 + len(REGISTRIES.engines)
