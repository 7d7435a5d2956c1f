"""Opens exported folders with HuggingFace's automatic classes and writes their logits.

    python tests/parity/exported_logits.py FOLDERS.json OUTPUT.npz

FOLDERS.json maps a name to `folder`, `auto_class` and the model's input: `inputs` with `input_ids`,
`attention_mask` and `token_type_ids`, or `texts`, a list for each side of pairs. A weight that the
folder lacks, or has too many, is an error.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import torch
import transformers

_OUTPUTS = ("logits", "start_logits", "end_logits", "last_hidden_state", "pooler_output")


def main(cases: Path, output: Path) -> None:
    """Run every case and write its outputs as `name/output`."""
    found = {}
    for name, case in json.loads(cases.read_text()).items():
        auto_class = getattr(transformers, case["auto_class"])
        model, loading = auto_class.from_pretrained(case["folder"], output_loading_info=True)
        for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
            assert not loading[kind], (name, kind, loading[kind])
        tokenizer = transformers.AutoTokenizer.from_pretrained(case["folder"])
        assert len(tokenizer) == model.config.vocab_size, name
        if "texts" in case:  # one list, or those of both texts of pairs
            inputs = tokenizer(*case["texts"], padding=True, truncation=True, return_tensors="pt")
        else:
            inputs = {key: torch.tensor(values) for key, values in case["inputs"].items()}
        with torch.no_grad():
            outputs = model.eval()(**inputs)
        for key in _OUTPUTS:
            if outputs.get(key) is not None:
                found[f"{name}/{key}"] = outputs[key].numpy()
        if "labels" in case:
            assert list(model.config.id2label.values()) == case["labels"], name
    np.savez(output, **found)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
