"""Languages of documents and lines by py3langid's model: an automaton over bytes finds n-grams, of
which naive Bayes decides (Lui and Baldwin 2012). The package itself reads half a megabyte a second.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import NamedTuple

import numba
import numpy as np

from pipeline.corpus.characters import LOWER, UPPER, decode, sentence_table

UNKNOWN = "unknown"


@dataclasses.dataclass(frozen=True)
class Languages:
    """The most likely language of each text."""

    codes: np.ndarray  # str [texts]
    probabilities: np.ndarray  # float64 [texts]; as likely as any without a known n-gram

    def named(self, threshold: float) -> np.ndarray:
        """Names the languages, str [texts], UNKNOWN below the threshold."""
        return np.where(self.probabilities >= threshold, self.codes, UNKNOWN)


class _Model(NamedTuple):
    moves: np.ndarray  # uint32 [rows * 256]: the next state
    rows: np.ndarray  # int64 [states]: where its row begins in the moves
    features: np.ndarray  # int32 [states]: the n-gram that ends in a state, or -1
    weights: np.ndarray  # float32 [n-grams, classes]
    prior: np.ndarray  # float32 [classes]
    owners: np.ndarray  # int64 [classes]: the first class of its language


@functools.cache
def _model() -> tuple[_Model, np.ndarray]:
    """The model, and str [classes], their languages."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    read = LanguageIdentifier.from_model_file(MODEL_FILE)
    codes = np.array(read.nb_classes)
    model = _Model(
        moves=np.array(read.tk_nextmove, np.uint32),
        rows=np.array(read.tk_row, np.int64) << 8,
        features=np.array(read.tk_output, np.int32),
        weights=np.array(read.nb_ptc, np.float32),
        prior=np.array(read.nb_pc, np.float32),
        owners=np.array([read.nb_classes.index(code) for code in codes]),
    )
    return model, codes


def known_languages() -> list[str]:
    return sorted(set(_model()[1].tolist()))


def identify(
    data: np.ndarray, starts: np.ndarray, stops: np.ndarray, feeds: np.ndarray, texts: np.ndarray
) -> Languages:
    """Languages of texts in NFC, each of lines after their line feeds.

    Args:
        data, starts, stops, feeds: of lines, as of `MeasuredText`.
        texts: int64 [texts + 1], offsets into the lines.
    """
    model, codes = _model()
    probabilities = np.zeros((len(texts) - 1, len(codes)), np.float32)
    is_upper = np.zeros(len(texts) - 1, np.bool_)
    _score(data, starts, stops, feeds, texts, model, sentence_table(), is_upper, probabilities)
    for text in np.flatnonzero(is_upper).tolist():  # seldom: the package lowers such texts
        lines = range(texts[text], texts[text + 1])
        parts = [b"\n" * int(feeds[i]) + data[starts[i] : stops[i]].tobytes() for i in lines]
        whole = b"".join(parts).decode().lstrip("\n")
        if whole.isupper():  # no title-case letters
            lowered = np.frombuffer(whole.lower().encode(), np.uint8)
            ends, one = np.array([0, len(lowered)]), np.array([0, 1])
            row, flag = probabilities[text : text + 1], is_upper[text : text + 1]
            _score(lowered, ends[:1], ends[1:], one, one, model, sentence_table(), flag, row)
    best = probabilities.argmax(axis=1)
    return Languages(codes[best], probabilities[np.arange(len(best)), best].astype(np.float64))


@numba.njit(cache=True, nogil=True)
def _score(data, starts, stops, feeds, texts, model, cases, is_upper, probabilities):
    counts = np.zeros(len(model.weights), np.int64)
    touched = np.empty(len(model.weights), np.int64)
    scores = np.empty(len(model.prior), np.float32)
    for text in range(len(texts) - 1):
        state, found, size = 0, 0, 0
        has_upper = has_lower = False
        for line in range(texts[text], texts[text + 1]):
            begin = starts[line] - (feeds[line] if line > texts[text] else 0)
            for position in range(begin, stops[line]):
                byte = data[position] if position >= starts[line] else 10
                if position >= starts[line] and not has_lower and byte & 0xC0 != 0x80:
                    case = cases[decode(data, position)[0]]
                    has_upper |= case == UPPER
                    has_lower |= case == LOWER
                state = model.moves[model.rows[state] + byte]
                feature = model.features[state]
                if feature >= 0:
                    if counts[feature] == 0:
                        touched[found] = feature
                        found += 1
                    counts[feature] += 1
            size += stops[line] - begin
        is_upper[text] = has_upper and not has_lower
        scores[:] = model.prior
        scores *= np.float32(found > 0)
        for place in range(found):
            feature = touched[place]
            weight = np.float32(np.log1p(counts[feature]))
            counts[feature] = 0
            for each in range(len(scores)):
                scores[each] += weight * model.weights[feature, each]
        # The root of the length keeps probabilities of long and short texts comparable.
        scores *= np.float32(1 / np.sqrt(max(size, 1)))
        scores = np.exp(scores - scores.max())
        scores /= scores.sum()
        for place in range(len(scores)):
            probabilities[text, place] = 0
        for place in range(len(scores)):
            probabilities[text, model.owners[place]] += scores[place]
