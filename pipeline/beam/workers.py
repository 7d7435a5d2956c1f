"""Worker processes: their verbosity, installed versions, and errors, which arrive as text."""

from __future__ import annotations

import builtins
import platform
import re
import signal
import unicodedata
from collections.abc import Iterable
from importlib import metadata

from bert_tf.base import errors
from bert_tf.base.errors import BertPipelineError, StoppedEarly, UsageError

_USER_ERROR = re.compile(rf"{re.escape(errors.__name__)}\.(\w+): (.*?)(?: \[while running|\n|$)")
_MISSING = re.compile(
    r"No module named '(?:pipeline|bert_tf)\b[\w.]*'"
    r"|Can't get attribute '\w+' on <module '(?:pipeline|bert_tf)\b[\w.]*'"
)
_CAUSE = "Caused by: "
_JOB_STATE = re.compile(r"^Pipeline \S+ failed in state \w+: ")
_HEADER = "Traceback (most recent call last):\n"
_STEP = re.compile(r" \[while running '[^']*'\]")
# Beam puts an exception whose message it cannot extend into the message of a RuntimeError.
_SYSTEM_ERROR = re.compile(r"\[Errno (\d+)\] (.*?)(?:: (['\"])(.*)\3)?")
_FAILURE = re.compile(r"(?:RuntimeError: (?=[\w.]*Error(?:: |$)))?([\w.]+)(?:: (.*))?")
NOT_INSTALLED = "not installed"


def user_error(error: BaseException) -> BertPipelineError | None:
    """Return the error for the user inside a runner's exception, or None."""
    return user_error_in(f"{type(error).__module__}.{type(error).__name__}: {error}")


def user_error_in(text: str) -> BertPipelineError | None:
    """Return the error for the user in the text of a traceback, or None."""
    match = _USER_ERROR.search(text)
    if match is None:
        return None
    name, message = match.groups()
    kind = getattr(errors, name, None)
    if not (isinstance(kind, type) and issubclass(kind, BertPipelineError)):
        return None
    if kind is StoppedEarly:  # the text does not have its signal; SIGTERM ends workers
        return StoppedEarly(message, signal.SIGTERM)
    if kind is errors.ConfigError:  # needs more than a message
        return UsageError(message)
    return kind(message)


def failure_in(text: str) -> tuple[str, str] | None:
    """Return the type and first message line of the error that ends a text's last traceback.

    Returns:
        None if the text has no traceback.
    """
    _, header, rest = text.rpartition(_HEADER)
    if not header:
        return None
    lines = (line for line in rest.splitlines() if line and not line.startswith(" "))
    match = _FAILURE.match(_STEP.sub("", next(lines, "")))
    if match is None:
        return None
    name, message = match.groups()
    return name, message or ""


def missing_module_in(text: str) -> str | None:
    """Return the module or name of this project that a worker lacks by its traceback, or None."""
    match = _MISSING.search(text)
    return match.group() if match else None


def last_cause(text: str) -> str:
    """Return the innermost cause in a runner's failure; without causes, its first line.

    Java writes the whole chain of causes with their stacks.
    """
    lines = [line.strip() for line in _JOB_STATE.sub("", text).splitlines() if line.strip()]
    causes = [line.removeprefix(_CAUSE) for line in lines if line.startswith(_CAUSE)]
    if causes:
        return causes[-1]
    return lines[0] if lines else "no reason given"


def system_error(name: str, message: str) -> OSError | None:
    """Return the OSError of a type's name and its message; None for another error.

    Args:
        name: of the type.
        message: such as `[Errno 28] No space left`.
    """
    kind = getattr(builtins, name, None)
    if not (isinstance(kind, type) and issubclass(kind, OSError)):
        return None
    match = _SYSTEM_ERROR.fullmatch(message)
    if match is None:
        return kind(message)
    return OSError(int(match[1]), match[2], match[4])


def installed_versions(packages: Iterable[str]) -> dict[str, str]:
    """Return versions of packages, Python, and its Unicode tables, on which cleaning depends."""
    versions = {}
    for name in packages:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = NOT_INSTALLED
    versions["python"] = platform.python_version()
    versions["unicode"] = unicodedata.unidata_version
    return versions
