"""Writes the verdicts of datatrove's filters on made documents, for test_curation.py.

python tests/parity/curation_verdicts.py FILE.json
"""

import json
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

# Names of our groups of rules; datatrove's classes and arguments.
FILTERS = {
    "gopher_repetition": ("GopherRepetitionFilter", {}),
    "gopher_quality": ("GopherQualityFilter", {}),
    "c4": ("C4QualityFilter", {"filter_no_terminal_punct": False, "remove_citations": False}),
    "c4,c4_terminal_punctuation": ("C4QualityFilter", {"remove_citations": False}),
    "fineweb": ("FineWebQualityFilter", {}),
}
COUNT = 600
# ruff: noqa: SIM905  (words read best as lines)
_WORDS = (
    "the be to of and that have with a in it is was for on river stone window market letter green "
    "walks turned small under bright question answer travelers remember mountain it's well-known "
    "1,000 1999 3.5 50% naïve москва javascript cookies"
).split()
_PHRASES = (
    "Terms of use",
    "we use cookies here",
    "lorem ipsum dolor sit",
    "if (x) { y }",
    "[edit]",
)


def documents(seed: int = 7) -> list[str]:
    """Texts on both sides of thresholds, of words and sentences on which spaCy's English
    tokenizer, which datatrove has, agrees with ours."""
    return [_document(random.Random(f"{seed} {number}")) for number in range(COUNT)]


def _document(random: random.Random) -> str:
    rate = {name: random.random() ** 3 for name in ("bullet", "hash", "dots", "end", "phrase")}
    vocabulary = random.sample(_WORDS, random.choice((4, 12, len(_WORDS))))
    longest = random.choice((3, 8, 20, 60))
    lines: list[str] = []
    for _ in range(random.choice((1, 4, 12, 30))):
        if lines and random.random() < rate["end"] / 3:
            lines.append(random.choice(lines))
            continue
        line = "".join(_line(random, rate, vocabulary, longest))
        lines.append(re.sub(r"(^|[.?!] )(\w)", lambda begin: begin[0].upper(), line))
        if random.random() < 0.3:
            lines.append("")
    return "\n".join(lines).strip("\n") or "empty"


def _line(
    random: random.Random, rate: dict[str, float], words: list[str], longest: int
) -> Iterator[str]:
    if random.random() < rate["bullet"]:
        yield random.choice(("- ", "• "))
    for place in range(random.randint(1, longest)):
        yield " " * (place > 0) + random.choice(words)
        if random.random() < rate["hash"] / 5:
            yield random.choice((" #", ",", ";", " 12 %"))
        if random.random() < rate["phrase"] / 60:
            yield " " + random.choice(_PHRASES)
    if random.random() < rate["dots"]:
        yield random.choice(("...", "…"))
    elif random.random() > rate["end"]:
        yield random.choice((".", ".", "?", "!"))


def main(path: str) -> None:
    """Write for each group a list with null for documents that stay, else datatrove's reason."""
    from datatrove.data import Document
    from datatrove.pipeline import filters

    verdicts: dict[str, list[str | None]] = {}
    for group, (name, arguments) in FILTERS.items():
        judge = getattr(filters, name)(**arguments)
        results = [judge.filter(Document(text=text, id="")) for text in documents()]
        verdicts[group] = [None if result is True else result[1] for result in results]
    Path(path).write_text(json.dumps(verdicts), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
