"""Campaigns of faults: seeded cases without end, counted by outcome.

A campaign is a generator function in a file of this folder. It prepares what its cases share in an
empty folder, and yields a function that runs one case:

    @campaign("bits flipped in files, which must be noticed")
    def corruption(folder: Path) -> Iterator[Case]:
        artifact = make_artifact(folder)

        def flip(random: Random) -> Outcome:
            ...
            return "noticed"  # or a Counter of outcomes, for a case of many inputs

        yield flip

A case draws only from the `Random` it is given, so that
`python tests/faults NAME --seed S --case N` repeats it, and fails by an exception.
"""

from __future__ import annotations

import dataclasses
import importlib
import itertools
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

Outcome = str | Counter[str]
Case = Callable[[Random], Outcome]

FOLDER = Path(__file__).parent
MOST_FAILURES = 20  # after which a campaign ends


@dataclasses.dataclass(frozen=True)
class Campaign:
    name: str
    says: str
    prepare: Callable[[Path], Any]  # a context manager of a Case


@dataclasses.dataclass
class Result:
    """The outcomes of the cases of a campaign."""

    campaign: str
    seed: int
    cases: int = 0
    outcomes: Counter[str] = dataclasses.field(default_factory=Counter)
    failures: list[str] = dataclasses.field(default_factory=list)
    seconds: float = 0.0


_CAMPAIGNS: dict[str, Campaign] = {}


def campaign(says: str) -> Callable[[Callable[[Path], Iterator[Case]]], Campaign]:
    """Register a campaign under its function's name, with a line about its cases."""

    def register(function: Callable[[Path], Iterator[Case]]) -> Campaign:
        made = Campaign(function.__name__, says, contextmanager(function))
        _CAMPAIGNS[made.name] = made
        return made

    return register


def all_campaigns() -> dict[str, Campaign]:
    """Import all files of this folder; none may import TensorFlow or Beam at the top."""
    for path in sorted(FOLDER.glob("*.py")):
        if not path.stem.startswith(("_", "test_", "conftest")):
            importlib.import_module(f"faults.{path.stem}")
    return dict(sorted(_CAMPAIGNS.items()))


def run_cases(
    run: Campaign,
    seed: int,
    *,
    minutes: float | None = None,
    cases: int | None = None,
    first: int = 0,
) -> Result:
    """Run cases from number `first` until the minutes, which include preparing, or cases are up.

    Ctrl-C ends a campaign. A failed one prints its traceback and the command that repeats it.
    """
    result, start = Result(run.name, seed), time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix=f"faults-{run.name}-") as folder,
        run.prepare(Path(folder)) as case,
    ):
        for number in itertools.count(first):
            is_late = minutes is not None and time.monotonic() - start > 60 * minutes
            if is_late or result.cases == cases or len(result.failures) == MOST_FAILURES:
                break
            result.cases += 1
            try:
                outcome = case(Random(f"{run.name}-{seed}-{number}"))
            except KeyboardInterrupt:  # counts of the cases until now are worth a table
                result.cases -= 1
                break
            except Exception as error:
                repeat = f"python tests/faults {run.name} --seed {seed} --case {number}"
                result.failures.append(f"{repeat}: {error!r}")
                result.outcomes["FAILED"] += 1
                sys.stderr.write(f"{traceback.format_exc()}repeat with: {repeat}\n")
            else:
                result.outcomes.update([outcome] if isinstance(outcome, str) else outcome)
    result.seconds = round(time.monotonic() - start, 1)
    return result
