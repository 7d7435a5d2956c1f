"""Explains logits of exported folders with PyTorch's gradients, or captum where it is installed.

    python tests/parity/integrated_gradients.py CASES.json OUTPUT.npz

CASES.json maps a name to `folder`, the model's input (`input_ids`, `token_type_ids`), the ids of
the `baseline`, the number of the logit (`target`) and of Gauss-Legendre `points`. Writes the share
of each token by name, float64 [tokens].
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import torch
import transformers

try:
    from captum.attr import LayerIntegratedGradients
except ImportError:
    LayerIntegratedGradients = None


def shares_by_captum(model, ids, types, baseline, target: int, points: int) -> np.ndarray:
    explainer = LayerIntegratedGradients(
        lambda rows: model(input_ids=rows, token_type_ids=types.expand(len(rows), -1)).logits,
        model.bert.embeddings.word_embeddings,
    )
    found = explainer.attribute(
        ids, baselines=baseline, target=target, n_steps=points, method="gausslegendre"
    )
    return found.sum(dim=-1)[0].detach().numpy().astype(np.float64)


def shares_by_gradients(model, ids, types, baseline, target: int, points: int) -> np.ndarray:
    places, weights = np.polynomial.legendre.leggauss(points)
    with torch.no_grad():
        row, empty = (model.bert.embeddings.word_embeddings(each) for each in (ids, baseline))
    total = torch.zeros_like(row, dtype=torch.float64)
    for place, weight in zip((places + 1) / 2, weights / 2, strict=True):
        between = (empty + place * (row - empty)).float().requires_grad_()
        logits = model(inputs_embeds=between, token_type_ids=types).logits
        (gradient,) = torch.autograd.grad(logits[0, target], between)
        total += weight * gradient.double()
    return ((row - empty).double() * total).sum(dim=-1)[0].numpy()


def main(cases: Path, output: Path) -> None:
    """Explains every case."""
    explain = shares_by_gradients if LayerIntegratedGradients is None else shares_by_captum
    found = {}
    for name, case in json.loads(cases.read_text()).items():
        model = transformers.AutoModelForSequenceClassification.from_pretrained(case["folder"])
        inputs = (torch.tensor([case[key]]) for key in ("input_ids", "token_type_ids", "baseline"))
        found[name] = explain(model.eval(), *inputs, case["target"], case["points"])
    np.savez(output, **found)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
