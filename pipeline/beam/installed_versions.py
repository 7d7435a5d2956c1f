"""The versions of what is installed."""

from __future__ import annotations

import platform
import unicodedata
from collections.abc import Iterable
from importlib import metadata

NOT_INSTALLED = "not installed"


def installed_versions(packages: Iterable[str]) -> dict[str, str]:
    """The versions of packages, of Python, and of Python's tables of Unicode, which cleaning,
    sentences and normalization follow."""
    versions = {}
    for name in packages:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = NOT_INSTALLED
    versions["python"] = platform.python_version()
    versions["unicode"] = unicodedata.unidata_version
    return versions
