"""A corpus for jobs that write to other storage, with a copy of a document and a bad line."""

import json
import random

from bert_tf.data.text.vocab_file import SPECIAL_TOKENS

WORDS = [f"{first}{second}" for first in "bcdfg" for second in "aeiou"]


def write_corpus(folder, documents):
    """Write `corpus.jsonl` and `vocab.txt`, and return their folder."""
    source = random.Random(0)
    texts = [
        "\n".join(" ".join(source.choices(WORDS, k=8)) + " ." for _ in range(6))
        for _ in range(documents)
    ]
    lines = [json.dumps({"text": text}) for text in [*texts, texts[3]]]
    (folder / "corpus.jsonl").write_text("\n".join([*lines, "{broken"]) + "\n")
    (folder / "vocab.txt").write_text("\n".join([*SPECIAL_TOKENS, *WORDS, "."]) + "\n")
    return folder
