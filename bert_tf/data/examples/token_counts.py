"""`piece_counts.txt`: how often each vocabulary entry occurs in a corpus, one number per line."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bert_tf.base.errors import InputError
from bert_tf.base.files import as_path, write_text_atomically

TOKEN_COUNTS_FILE = "piece_counts.txt"


def write_token_counts(counts: np.ndarray, directory: str | Path) -> None:
    """Writes int64 [vocabulary] in the order of the vocabulary."""
    text = "".join(f"{count}\n" for count in counts.tolist())
    write_text_atomically(as_path(directory) / TOKEN_COUNTS_FILE, text)


def read_token_counts(directory: str | Path, vocab_size: int) -> np.ndarray:
    """What `write_token_counts` wrote, int64 [vocab_size].

    Raises:
        InputError: the file is missing or damaged.
    """
    path = as_path(directory) / TOKEN_COUNTS_FILE
    try:
        counts = np.array(path.read_text(encoding="utf-8").split(), np.int64)
    except (OSError, ValueError):
        counts = np.zeros(0, np.int64)
    if len(counts) != vocab_size or (counts < 0).any():
        raise InputError(
            f"{path}: expected one whole number per line for each of the {vocab_size} entries of "
            "the vocabulary; make the data again"
        )
    return counts
