"""Choices of config keys that other rooms implement: engines, formats, trackers, tasks.

`bert_tf/__init__.py` fills the tables first; an entry's module is imported when it is chosen.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping
from typing import ClassVar, TypeVar

from bert_tf.base.errors import check_packages

AUTO = "auto"
FLOAT32, BFLOAT16, FLOAT16, INT8 = "float32", "bfloat16", "float16", "int8"
PRECISIONS = (AUTO, FLOAT32, BFLOAT16, FLOAT16, INT8)
FOLDER, SERVING = "folder", "serving"
TEXT, IDS = "text", "ids"
TENSORBOARD = "tensorboard"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Entry:
    """A choice that need not be imported, or installed, to be known."""

    asked: ClassVar[str]  # how a user asks for it, with its name as `{}`
    instead: ClassVar[str] = ""  # advice if it is not installed

    name: str  # on the command line, in configs and manifests
    packages: tuple[str, ...] = ()

    @property
    def extra(self) -> str:
        """The extra of this package that brings its packages."""
        return self.name

    def check_installed(self) -> None:
        """Raises UsageError if a package is missing; imports none."""
        asked = self.asked.format(self.name)
        check_packages(asked, self.packages, extra=self.extra, instead=self.instead)


EntryType = TypeVar("EntryType", bound=Entry)


def by_name(*entries: EntryType) -> dict[str, EntryType]:
    return {entry.name: entry for entry in entries}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Format(Entry):
    """A format of exported models, as far as configs ask; see `FormatEntry`."""

    title: str  # for help and for reports on a folder
    options: tuple[str, ...] = ()  # keys of `ExportConfig` that only this format follows
    has_pooling: bool = False  # whether it states how to make the vector of a text
    quantizer: str | None = None  # package that makes graphs of 8-bit integers


@dataclasses.dataclass(kw_only=True)
class Registries:
    """The tables by name; tests may add entries at any time."""

    engines: Mapping[str, Entry] = dataclasses.field(default_factory=dict)
    formats: Mapping[str, Format] = dataclasses.field(default_factory=dict)
    trackers: Mapping[str, Entry] = dataclasses.field(default_factory=dict)
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
