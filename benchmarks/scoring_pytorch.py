"""The PyTorch side of benchmarks/scoring.py: transformers, rows sorted by length.

    python benchmarks/scoring_pytorch.py MODEL TEXTS

Needs torch and transformers. Scores all texts for every line on stdin and answers with a line of
JSON: seconds of wall clock and of processor time, and the labels.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

BATCH_ROWS = 32
MAX_LENGTH = 128


def score(tokenizer, model, texts: list[str]) -> list[int]:
    rows = tokenizer(texts, truncation=True, max_length=MAX_LENGTH)["input_ids"]
    order = sorted(range(len(rows)), key=lambda row: -len(rows[row]))
    labels = [0] * len(rows)
    for begin in range(0, len(order), BATCH_ROWS):
        chosen = order[begin : begin + BATCH_ROWS]
        batch = tokenizer.pad({"input_ids": [rows[row] for row in chosen]}, return_tensors="pt")
        with torch.inference_mode():
            best = model(**batch).logits.argmax(dim=-1)
        for row, label in zip(chosen, best.tolist(), strict=True):
            labels[row] = label
    return labels


def main() -> None:
    folder, texts_file = sys.argv[1:]
    texts = json.loads(Path(texts_file).read_text(encoding="utf-8"))
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    score(tokenizer, model, texts[: 2 * BATCH_ROWS])
    print("ready", flush=True)
    for _ in sys.stdin:
        wall, processor = time.perf_counter(), time.process_time()
        labels = score(tokenizer, model, texts)
        answer = {
            "seconds": time.perf_counter() - wall,
            "processor_seconds": time.process_time() - processor,
            "labels": labels,
        }
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
