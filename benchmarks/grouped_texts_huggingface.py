"""The HuggingFace side of benchmarks/grouped_texts.py: `datasets` with a fast tokenizer.

    python benchmarks/grouped_texts_huggingface.py TEXT VOCAB PROCESSES CACHE

Tokenizes the lines of a text and cuts them into blocks of 128 tokens, as transformers'
examples/pytorch/language-modeling/run_mlm.py does: no sentence pairs, no masks. Needs datasets and
transformers.
"""

from __future__ import annotations

import itertools
import sys

import datasets
from transformers import BertTokenizerFast

LENGTH = 128


def group_texts(examples: dict) -> dict:
    joined = {name: list(itertools.chain(*rows)) for name, rows in examples.items()}
    total = len(joined["input_ids"]) // LENGTH * LENGTH
    return {
        name: [values[begin : begin + LENGTH] for begin in range(0, total, LENGTH)]
        for name, values in joined.items()
    }


def main() -> None:
    text, vocab, processes, cache = sys.argv[1:]
    datasets.disable_progress_bars()
    tokenizer = BertTokenizerFast(vocab_file=vocab, model_max_length=10**9)
    lines = datasets.load_dataset("text", data_files=text, cache_dir=cache, split="train")
    tokenized = lines.map(
        lambda rows: tokenizer(rows["text"], return_special_tokens_mask=True),
        batched=True,
        num_proc=int(processes),
        remove_columns=["text"],
    )
    grouped = tokenized.map(group_texts, batched=True, num_proc=int(processes))
    print(len(grouped))


if __name__ == "__main__":
    main()
