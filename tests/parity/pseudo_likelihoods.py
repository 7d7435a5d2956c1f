"""Computes likelihoods and next sentences with HuggingFace's models, one masked row at a time.

    python tests/parity/pseudo_likelihoods.py FOLDER TEXTS.json OUTPUT.npz

FOLDER is a HuggingFace folder with a vocabulary. TEXTS.json has `texts` and `pairs`, lists of equal
length. Writes the pseudo-log-likelihood (Salazar et al. 2020) of each text by `BertForMaskedLM`, as
`log_likelihood`, its `token_count`, and the probability that the pair follows the text by
`BertForNextSentencePrediction`, as `follows`. Both heads are read from the same folder.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import torch
import transformers


def main(folder: Path, texts: Path, output: Path) -> None:
    """Compute and write the results."""
    given = json.loads(texts.read_text(encoding="utf-8"))
    tokenizer = transformers.BertTokenizerFast.from_pretrained(folder)
    masked_lm = transformers.BertForMaskedLM.from_pretrained(folder).eval()
    next_sentence = transformers.BertForNextSentencePrediction.from_pretrained(folder).eval()
    totals = []
    counts = []
    follows = []
    for text, pair in zip(given["texts"], given["pairs"], strict=True):
        ids = tokenizer(text, return_tensors="pt").input_ids
        total = 0.0
        for place in range(1, ids.shape[1] - 1):
            masked = ids.clone()
            masked[0, place] = tokenizer.mask_token_id
            with torch.no_grad():
                logits = masked_lm(masked).logits[0, place].double()
            total += torch.log_softmax(logits, -1)[ids[0, place]].item()
        totals.append(total)
        counts.append(ids.shape[1] - 2)
        with torch.no_grad():
            scores = next_sentence(**tokenizer(text, pair, return_tensors="pt")).logits[0]
        follows.append(torch.softmax(scores.double(), -1)[0].item())
    np.savez(output, log_likelihood=totals, token_count=counts, follows=follows)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
