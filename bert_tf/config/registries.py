"""Choices of config keys that other rooms implement: engines, formats, trackers, tasks.

`bert_tf/__init__.py` fills the tables first; an entry's module is imported when it is chosen.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping
from typing import ClassVar, TypeVar

from bert_tf.base.errors import check_packages

AUTO = "auto"
FLOAT32 = "float32"
BFLOAT16 = "bfloat16"
FLOAT16 = "float16"
INT8 = "int8"
PRECISIONS = (AUTO, FLOAT32, BFLOAT16, FLOAT16, INT8)
FOLDER = "folder"
SERVING = "serving"
TEXT = "text"
IDS = "ids"
TENSORBOARD = "tensorboard"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Entry:
    """A choice that is known without being imported, or installed.

    Attributes:
        request: the option that asks for it, with its name as `{}`.
        instead: advice if it is not installed.
        name: its name on the command line, in configs and manifests.
        packages: packages that it needs, by import name.
    """

    request: ClassVar[str]
    instead: ClassVar[str] = ""

    name: str
    packages: tuple[str, ...] = ()

    @property
    def extra(self) -> str:
        """The extra of this package that installs its packages."""
        return self.name

    def check_installed(self) -> None:
        """Raise UsageError if a package is missing, without importing any."""
        request = self.request.format(self.name)
        check_packages(request, self.packages, extra=self.extra, instead=self.instead)


EntryType = TypeVar("EntryType", bound=Entry)


def by_name(*entries: EntryType) -> dict[str, EntryType]:
    """Return entries by their names."""
    return {entry.name: entry for entry in entries}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Format(Entry):
    """A format of exported models, as far as configs need it; see `FormatEntry`.

    Attributes:
        title: for help, and for reports about a folder.
        options: keys of `ExportConfig` that only this format uses.
        has_pooling: whether it says how to make the vector of a text.
        quantizer: package that makes graphs of 8-bit integers; None if there is none.
    """

    title: str
    options: tuple[str, ...] = ()
    has_pooling: bool = False
    quantizer: str | None = None


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
