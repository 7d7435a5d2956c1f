"""Rows to label next beside rows chosen at random: accuracy after each round of labeling.

    python benchmarks/label_next.py DATA --model FOLDER [--seeds 5]

DATA is a folder with `trec/` (6 labels) and `glue/SST-2/`; those that are there are used. FOLDER is
an encoder such as MiniLM. A logistic regression on its vectors, which are computed once, stands for
a fine-tuned model, so that all rounds of all seeds take a minute. It begins with 100 random rows;
in each of five rounds, 100 more are labeled: random ones, the least certain ones, or those that
`score --label-next` chooses. Prints the mean accuracy on test rows and its standard error over the
seeds, of which each starts all methods from the same rows.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from bert_tf.embeddings.settings import EMBEDDING, EmbedderSettings
from pipeline.scoring.label_next import candidates_for, choose_rows

FIRST, MORE, ROUNDS = 100, 100, 5
MOST_POOL, MOST_TEST = 8000, 1000
FILES = {
    "TREC": ("trec", "train.tsv", "test.tsv", "text", "coarse"),
    "SST-2": ("glue/SST-2", "train.tsv", "dev.tsv", "sentence", "label"),
}
# From (margins, vectors, random numbers) of unlabeled rows to the numbers of the chosen ones.
Choice = Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray]


def read(path: Path, text: str, label: str, most: int) -> tuple[list[str], np.ndarray]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))
    rows = rows[:: max(1, len(rows) // most)][:most]
    return [row[text] for row in rows], np.array([row[label] for row in rows])


def at_random(margins: np.ndarray, vectors: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.choice(len(margins), MORE, replace=False)


def least_certain(margins: np.ndarray, vectors: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.argsort(margins, kind="stable")[:MORE]


def label_next(margins: np.ndarray, vectors: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    candidates = np.argsort(margins, kind="stable")[: candidates_for(MORE)]
    return candidates[choose_rows(margins[candidates], vectors[candidates], MORE)]


METHODS: dict[str, Choice] = {
    "random": at_random,
    "least certain": least_certain,
    "label-next": label_next,
}


def accuracies(choose: Choice, pool, test, seed: int) -> list[float]:
    """Return the accuracy on test rows before and after each round."""
    (vectors, labels), rng = pool, np.random.default_rng(seed)
    known = rng.choice(len(labels), FIRST, replace=False)
    found = []
    for _ in range(ROUNDS + 1):
        model = LogisticRegression(C=10.0, max_iter=500).fit(vectors[known], labels[known])
        found.append(float((model.predict(test[0]) == test[1]).mean()))
        left = np.setdiff1d(np.arange(len(labels)), known)
        ordered = np.sort(model.predict_proba(vectors[left]), axis=1)
        chosen = choose(ordered[:, -1] - ordered[:, -2], vectors[left], rng)
        known = np.concatenate([known, left[chosen]])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    settings = EmbedderSettings(pooling="mean", normalize=True, max_seq_length=64)
    embedder = settings.load(arguments.model)
    for name, (folder, train, tested, text, label) in FILES.items():
        if not (arguments.data / folder / train).is_file():
            continue
        parts = []
        for file, most in ((train, MOST_POOL), (tested, MOST_TEST)):
            texts, labels = read(arguments.data / folder / file, text, label, most)
            parts.append((embedder.predict({"text": texts})[EMBEDDING], labels))
        pool, test = parts
        print(f"{name}: {len(pool[1]):,} rows to choose from, {len(test[1]):,} test rows")
        print("rows labeled  " + "  ".join(f"{FIRST + MORE * n:>14}" for n in range(ROUNDS + 1)))
        for method, choose in METHODS.items():
            runs = np.array(
                [accuracies(choose, pool, test, seed) for seed in range(arguments.seeds)]
            )
            errors = runs.std(axis=0, ddof=1) / len(runs) ** 0.5
            cells = (f"{m:.3f} ± {e:.3f}" for m, e in zip(runs.mean(axis=0), errors, strict=True))
            print(f"{method:<13} " + "  ".join(f"{cell:>14}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
