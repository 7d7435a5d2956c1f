"""C4 drops documents with placeholder text or braces, and those of fewer than 5 sentences."""

from __future__ import annotations

import numpy as np

from pipeline.corpus.curation.measures import MeasuredText
from pipeline.corpus.curation.rule import c4
from pipeline.corpus.sentences import split_sentences


def placeholder_text(text: MeasuredText) -> np.ndarray:
    return text.total(text.occurrences("lorem ipsum"))


def braces(text: MeasuredText) -> np.ndarray:
    return text.total(text.occurrences("{"))


def sentences(text: MeasuredText) -> np.ndarray:
    """Counts sentences, as `sentence_splitter: rules`, of the lines that C4's rules keep."""
    return text.total(split_sentences(text.data, text.starts, text.stops)[2])


PLACEHOLDER = c4("c4_max_lorem_ipsum", placeholder_text, maximum=0, highest=1000)
BRACES = c4("c4_max_braces", braces, maximum=0, highest=1e6)
SENTENCES = c4("c4_min_sentences", sentences, minimum=5, highest=1e6)
