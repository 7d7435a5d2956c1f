"""Runs campaigns of faults: `python tests/faults --minutes 30`, or `make faults`."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

TESTS = Path(__file__).parent.parent
# Last, since the folders of tests have the names of the packages.
sys.path[:] = [*(path for path in sys.path if path != str(TESTS / "faults")), str(TESTS.parent)]
sys.path.append(str(TESTS))

from faults.campaigns import Result, all_campaigns, run_cases  # noqa: E402


def table(results: list[Result]) -> str:
    """Return a line for each outcome of each campaign."""
    rows = [("campaign", "cases", "seconds", "outcome", "count")]
    for result in results:
        head = (result.campaign, f"{result.cases:,}", f"{result.seconds:,}")
        for outcome, count in sorted(result.outcomes.items()) or [("", 0)]:
            rows.append((*head, outcome, f"{count:,}"))
            head = ("", "", "")
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "\n".join(lines) + "\n"


def main() -> int:
    campaigns = all_campaigns()
    parser = argparse.ArgumentParser(prog="python tests/faults", description=__doc__)
    parser.add_argument(
        "campaigns", nargs="*", help=f"those to run, by default all: {', '.join(campaigns)}"
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="of all campaigns together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="run only this case of each campaign")
    parser.add_argument("--cases", type=int, help="of each campaign, in place of --minutes")
    parser.add_argument(
        "--report", type=Path, default=Path("build/faults.jsonl"), help="appends a line each"
    )
    given = parser.parse_args()
    if unknown := set(given.campaigns) - set(campaigns):
        parser.error(f"no such campaign: {', '.join(sorted(unknown))}")
    chosen = [campaigns[name] for name in given.campaigns or campaigns]
    is_counted = given.cases is not None or given.case is not None
    results = []
    for each in chosen:
        sys.stderr.write(f"{each.name}: {each.says}\n")
        result = run_cases(
            each,
            given.seed,
            minutes=None if is_counted else given.minutes / len(chosen),
            cases=given.cases if given.case is None else 1,
            first=given.case or 0,
        )
        results.append(result)
        given.report.parent.mkdir(parents=True, exist_ok=True)
        with given.report.open("a", encoding="utf-8") as report:
            line = {
                **dataclasses.asdict(result),
                "outcomes": result.outcomes,  # which `asdict` counts anew, as pairs
                "time": datetime.now(UTC).isoformat("T", "seconds"),
            }
            report.write(f"{json.dumps(line)}\n")
    sys.stdout.write(table(results))
    for failure in (failure for result in results for failure in result.failures):
        sys.stdout.write(f"FAILED {failure}\n")
    return int(any(result.failures for result in results))


if __name__ == "__main__":
    sys.exit(main())
