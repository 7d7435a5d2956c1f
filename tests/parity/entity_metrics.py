"""Writes seqeval's metrics of random tags, ill-formed ones too, for tests of tagging's metrics.

    python tests/parity/entity_metrics.py tests/golden/entity_metrics.json

Runs in an environment made from requirements.in. seqeval knows no BILOU in its default mode, where
the same tags as IOBES stand for it.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

from seqeval import metrics
from seqeval.scheme import BILOU, IOB2, IOBES

SCHEMES = {"bio": ("BI", IOB2), "iobes": ("BIES", IOBES), "bilou": ("BILU", BILOU)}
AS_IOBES = str.maketrans({"L": "E", "U": "S"})
CASES = 6
SENTENCES = 12
MOST_WORDS = 12


def random_tags(generator: random.Random, letters: str, words: int) -> list[str]:
    """Tags that are well-formed more often than chance has it."""
    tags: list[str] = []
    for _ in range(words):
        kind = generator.choice(["org", "per-son"])
        if tags and tags[-1] != "O" and generator.random() < 0.7:
            kind = tags[-1][2:]
        is_outside = generator.random() < 0.3
        tags.append("O" if is_outside else f"{generator.choice(letters)}-{kind}")
    return tags


def expected(gold: list[list[str]], predicted: list[list[str]], scheme: str) -> dict[str, float]:
    strict = {"mode": "strict", "scheme": SCHEMES[scheme][1], "zero_division": 0}
    values = {"strict_f1": metrics.f1_score(gold, predicted, **strict)}
    values["accuracy"] = metrics.accuracy_score(gold, predicted)
    gold, predicted = ([as_iobes(tags, scheme) for tags in rows] for rows in (gold, predicted))
    for name in ("f1", "precision", "recall"):
        score = getattr(metrics, f"{name}_score")
        values[name] = score(gold, predicted, zero_division=0)
    values["macro_f1"] = metrics.f1_score(gold, predicted, average="macro", zero_division=0)
    return {name: float(value) for name, value in values.items()}


def as_iobes(tags: list[str], scheme: str) -> list[str]:
    return tags if scheme != "bilou" else [tag[0].translate(AS_IOBES) + tag[1:] for tag in tags]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    generator = random.Random(0)
    cases = []
    for scheme, (letters, _) in SCHEMES.items():
        for _ in range(CASES):
            lengths = [generator.randint(1, MOST_WORDS) for _ in range(SENTENCES)]
            gold = [random_tags(generator, letters, length) for length in lengths]
            predicted = [
                tags if generator.random() < 0.3 else random_tags(generator, letters, len(tags))
                for tags in gold
            ]
            cases.append(
                {
                    "scheme": scheme,
                    "gold": [" ".join(tags) for tags in gold],
                    "predicted": [" ".join(tags) for tags in predicted],
                    "expected": expected(gold, predicted, scheme),
                }
            )
    options.file.write_text(json.dumps(cases, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
