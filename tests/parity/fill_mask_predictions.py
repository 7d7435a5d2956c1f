"""Writes a model and the predictions of HuggingFace's fill-mask pipeline with it.

    python tests/parity/fill_mask_predictions.py tests/golden/fill_mask

The folder gets a tiny `BertForMaskedLM` of random weights, as HuggingFace saves it, and
`expected.json`: for each text a list of masks, each the list of candidates of the pipeline. Runs in
an environment made from requirements.in.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
import transformers

TOP_K = 4
LETTERS = "abcdefghijklmnopqrstuvwxyz"
VOCAB = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", ",", '"', "\\", "?"),
    *LETTERS,
    *(f"##{letter}" for letter in LETTERS),
    *("rome", "paris", "is", "the", "capital", "of", "italy", "walk", "##ing", "##ed", "zürich"),
]
TEXTS = [
    "Rome is the [MASK] of Italy.",
    "[MASK] is the capital of [MASK], [MASK] [MASK]?",
    "walk[MASK] of the Rome",
    "[MASK]",
    'the "[MASK]" \\ of',
    "Paris, [MASK][MASK].",
    "unknown ✓ 北 [MASK] [mask]",
]


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join([*VOCAB, ""]), encoding="utf-8")
    torch.manual_seed(2)
    model = transformers.BertForMaskedLM(
        transformers.BertConfig(
            vocab_size=len(VOCAB),
            hidden_size=12,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=16,
            max_position_embeddings=32,
        )
    ).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            mean = 1 if name.endswith("LayerNorm.weight") else 0
            parameter.copy_(mean + 0.5 * torch.randn(parameter.shape))
    model.save_pretrained(folder)
    tokenizer = transformers.BertTokenizerFast(str(folder / "vocab.txt"), do_lower_case=True)
    pipeline = transformers.pipeline("fill-mask", model=model, tokenizer=tokenizer, top_k=TOP_K)
    expected = []
    for text in TEXTS:
        found = pipeline(text)
        masks = [found] if text.count("[MASK]") == 1 else found
        expected.append(
            [
                [{"token": each["token_str"], "score": each["score"]} for each in candidates]
                for candidates in masks
            ]
        )
    versions = f"torch {torch.__version__}, transformers {transformers.__version__}"
    document = {"made_with": versions, "top_k": TOP_K, "texts": TEXTS, "masks": expected}
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    (folder / "expected.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
