"""Gopher keeps documents with two of eight English stop words."""

from __future__ import annotations

import numpy as np

from bert_tf.base.kernels import fnv1a
from pipeline.corpus.curation.measures import MeasuredText
from pipeline.corpus.curation.rule import gopher_quality

_STOP_WORDS = ("the", "be", "to", "of", "and", "that", "have", "with")


def distinct_stop_words(text: MeasuredText) -> np.ndarray:
    """NaN for documents of other languages, where `--languages` tells them."""
    found = np.zeros(text.num_documents)
    for word in _STOP_WORDS:
        sought = np.uint64(fnv1a(np.frombuffer(word.encode(), np.uint8), 0, len(word)))
        found += text.total_of_words(text.words.hashes == sought) > 0
    return found


RULE = gopher_quality(
    "gopher_min_stop_words", distinct_stop_words, minimum=2, highest=len(_STOP_WORDS)
)
