"""How well the distance from the training rows tells texts of another kind.

    python benchmarks/far_texts.py DATA --model EXPORTED

DATA is a folder with `trec/` and `glue/SST-2/`. EXPORTED is a classifier that `finetune` has
trained on TREC, with evaluation rows, and `export` has written. Prints the area under the ROC curve
by which test rows of TREC and sentences of SST-2 are told apart: by the distance, and by one minus
the probability of the prediction; and the shares of both that `score --abstain-far` leaves out.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from bert_tf import load
from bert_tf.config.bert_file import read_task
from bert_tf.embeddings.settings import EMBEDDING, EmbedderSettings
from bert_tf.tasks.profile.profile import training_distance

MOST_ROWS = 500


def read_texts(path: Path, column: str) -> list[str]:
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [row[column] for row in rows[:MOST_ROWS]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", required=True)
    arguments = parser.parse_args()
    near = read_texts(arguments.data / "trec/test.tsv", "text")
    far = read_texts(arguments.data / "glue/SST-2/dev.tsv", "sentence")
    embedder = EmbedderSettings.of_model(read_task(arguments.model) or {}).load(arguments.model)
    distance = training_distance(arguments.model, "--model")
    texts = [*near, *far]
    is_far = np.repeat([False, True], [len(near), len(far)])
    distances = distance.distances(embedder.predict({"text": texts})[EMBEDDING])
    scores = np.array([row["predicted_score"] for row in load(arguments.model).predict(texts)])
    print(f"{len(near)} texts of TREC, {len(far)} of SST-2")
    print(f"area under the ROC curve: distance {roc_auc_score(is_far, distances):.4f}")
    print(f"area under the ROC curve: 1 - probability {roc_auc_score(is_far, 1 - scores):.4f}")
    for share in (0.9, 0.95, 0.99):
        is_out = distances > distance.limit(share, "--abstain-far")
        print(
            f"--abstain-far {share}: leaves out {is_out[~is_far].mean():.3f} of TREC, "
            f"{is_out[is_far].mean():.3f} of SST-2"
        )


if __name__ == "__main__":
    main()
