"""Languages of documents and lines, by py3langid's model.

An automaton over bytes finds n-grams, of which naive Bayes decides (Lui and Baldwin 2012). The
package itself reads half a megabyte a second; here the same model runs in two compiled loops:

1. `_count` steps through the automaton, a byte at a time. Each state names the n-gram that ends
   there.
2. `_score` adds up log(1 + count) times the weights of each n-gram that was found, over all
   languages at once.

Weights are whole numbers in parts of 1/512, so sums of n-grams that occur once are exact in
integers. Probabilities equal the package's up to rounding (`tests/pipeline/corpus/curation`).
"""

from __future__ import annotations

import dataclasses
import functools
from typing import NamedTuple

import numpy as np

from bert_tf.base.compiled import numba
from pipeline.corpus.characters import LOWER, UPPER, decode, sentence_table

UNKNOWN = "unknown"
_WEIGHT_SCALE = 512  # the package's float16 weights are multiples of its inverse
_SMALL_COUNTS = 256  # of an n-gram; their logarithms are looked up
_LONGEST = 6  # bytes of n-grams
# Scores are logarithms: a language that is so far behind the best adds nothing to a float32 sum.
_NEGLIGIBLE = -30


@dataclasses.dataclass(frozen=True)
class Languages:
    """The most likely language of each text.

    Attributes:
        codes: str [texts].
        probabilities: float64 [texts]; of a text without a known n-gram all languages are equally
            likely.
    """

    codes: np.ndarray
    probabilities: np.ndarray

    def named(self, threshold: float) -> np.ndarray:
        """Name the languages, str [texts], UNKNOWN below the threshold."""
        return np.where(self.probabilities >= threshold, self.codes, UNKNOWN)


class _Model(NamedTuple):
    """The automaton and the classifier.

    Attributes:
        moves: uint32 [rows, 256], the next state.
        rows: uint16 [states], the row of each in the moves.
        features: int32 [states], the n-gram that ends in a state, or their number for none.
        weights: int16 [n-grams + 1, classes], in parts of _WEIGHT_SCALE; the last are 0.
        prior: float32 [classes].
        owners: int64 [classes], the first class of its language.
    """

    moves: np.ndarray
    rows: np.ndarray
    features: np.ndarray
    weights: np.ndarray
    prior: np.ndarray
    owners: np.ndarray


@functools.cache
def _model() -> tuple[_Model, np.ndarray]:
    """Return the model and the language codes of its classes, str [classes]."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    read = LanguageIdentifier.from_model_file(MODEL_FILE)
    codes = np.array(read.nb_classes)
    features = np.array(read.tk_output, np.int32)
    weights = np.pad(read.nb_ptc, ((0, 1), (0, 0))).astype(np.float32) * _WEIGHT_SCALE
    assert (weights == weights.astype(np.int16)).all(), "other weights need another scale"
    model = _Model(
        moves=np.array(read.tk_nextmove, np.uint32).reshape(-1, 256),
        rows=np.array(read.tk_row, np.uint16),
        features=np.where(features < 0, len(weights) - 1, features),
        weights=weights.astype(np.int16),
        prior=np.array(read.nb_pc, np.float32),
        owners=np.array([read.nb_classes.index(code) for code in codes]),
    )
    return model, codes


def known_languages() -> list[str]:
    """Return the codes of all languages of the model, sorted."""
    return sorted(set(_model()[1].tolist()))


def identify(
    data: np.ndarray, starts: np.ndarray, stops: np.ndarray, feeds: np.ndarray, texts: np.ndarray
) -> Languages:
    """Return the languages of texts in NFC.

    A text is several lines, joined with the line feeds before each. Texts without small letters
    are judged in lower case, as the package does.

    Args:
        data, starts, stops, feeds: of lines, see `MeasuredText`.
        texts: int64 [texts + 1], offsets into the lines.
    """
    model, codes = _model()
    cases = sentence_table()
    probabilities = np.zeros((len(texts) - 1, len(codes)), np.float32)
    is_upper = np.zeros(len(texts) - 1, np.bool_)
    _score(data, starts, stops, feeds, texts, model, cases, is_upper, probabilities)
    for text in np.flatnonzero(is_upper).tolist():  # seldom
        parts = []
        for line in range(texts[text], texts[text + 1]):
            parts.append(b"\n" * int(feeds[line]))
            parts.append(data[starts[line] : stops[line]].tobytes())
        joined = b"".join(parts).decode().lstrip("\n")
        if joined.isupper():  # no title-case letters
            # Scored again, as one text of one line.
            lowered = np.frombuffer(joined.lower().encode(), np.uint8)
            bounds = np.array([0, len(lowered)])
            one_line = np.array([0, 1])
            row = probabilities[text : text + 1]
            flag = is_upper[text : text + 1]
            _score(lowered, bounds[:1], bounds[1:], one_line, one_line, model, cases, flag, row)
    best = probabilities.argmax(axis=1)
    return Languages(codes[best], probabilities[np.arange(len(best)), best].astype(np.float64))


@numba.njit(cache=True, nogil=True)
def _score(data, starts, stops, feeds, texts, model, cases, is_upper, probabilities):
    """Set the probability of each language for each text.

    Args:
        data, starts, stops, feeds: of lines, see `MeasuredText`.
        texts: int64 [texts + 1], offsets into the lines.
        model: of `_model`.
        cases: uint8, capitals and small letters by code point.
        is_upper: bool [texts], to be set: whether a text has capitals only.
        probabilities: float32 [texts, classes], to be set; classes of one language share the first.
    """
    no_gram = len(model.weights) - 1
    num_classes = len(model.prior)
    counts = np.zeros(no_gram + 1, np.int32)
    counts[no_gram] = 1  # never new
    touched = np.empty(no_gram + 4, np.int32)
    logs = np.log1p(np.arange(_SMALL_COUNTS)).astype(np.float32)
    once = np.empty(num_classes, np.int32)  # sums of weights of n-grams that occur once
    scores = np.empty(num_classes, np.float32)
    for text in range(len(texts) - 1):
        joined, is_upper[text] = _join(data, starts, stops, feeds, texts[text : text + 2], cases)
        num_features = _count(joined, model, counts, touched)
        once[:] = 0
        scores[:] = 0
        singles = 0
        for place in range(num_features):
            feature = touched[place]
            count = counts[feature]
            counts[feature] = 0
            if count == 1:  # most of them
                touched[singles] = feature
                singles += 1
                continue
            weight = logs[count] if count < _SMALL_COUNTS else np.float32(np.log1p(count))
            weights = model.weights[feature]
            for language in range(num_classes):
                scores[language] += weight * np.float32(weights[language])
        # Four rows of weights are read together, since each waits for memory. The last four are
        # filled up with the n-gram whose weights are 0.
        touched[singles : singles + 3] = no_gram
        for place in range(0, singles, 4):
            first = model.weights[touched[place]]
            second = model.weights[touched[place + 1]]
            third = model.weights[touched[place + 2]]
            fourth = model.weights[touched[place + 3]]
            for language in range(num_classes):
                once[language] += np.int32(first[language]) + np.int32(second[language])
                once[language] += np.int32(third[language]) + np.int32(fourth[language])
        counts[no_gram] = 1
        # The root of the length keeps probabilities of long and short texts comparable.
        scale = np.float32(1 / np.sqrt(max(len(joined), 1)))
        for language in range(num_classes):
            prior = model.prior[language] if num_features else np.float32(0)
            score = scores[language] + logs[1] * np.float32(once[language])
            scores[language] = (prior + score / np.float32(_WEIGHT_SCALE)) * scale
        # Softmax.
        best = scores.max()
        total = np.float32(0)
        for language in range(num_classes):
            distance = scores[language] - best
            scores[language] = np.exp(distance) if distance > _NEGLIGIBLE else np.float32(0)
            total += scores[language]
        probabilities[text] = 0
        for language in range(num_classes):
            probabilities[text, model.owners[language]] += scores[language] / total


@numba.njit(cache=True)
def _join(data, starts, stops, feeds, lines, cases):
    """Join lines, with the line feeds before all but the first.

    Args:
        data, starts, stops, feeds: of lines, see `MeasuredText`.
        lines: int64 [2], the first line and the one after the last.
        cases: uint8, capitals and small letters by code point.

    Returns:
        The bytes, and whether there are capitals but no small letters.
    """
    first, end = lines
    capacity = (stops[first:end] - starts[first:end] + feeds[first:end]).sum()
    joined = np.full(capacity, ord("\n"), np.uint8)
    has_upper = has_lower = False
    size = 0
    for line in range(first, end):
        size += feeds[line] if line > first else 0
        position, stop = starts[line], stops[line]
        joined[size : size + stop - position] = data[position:stop]
        size += stop - position
        while position < stop and not has_lower:
            code_point, width = decode(data, position)
            has_upper |= cases[code_point] == UPPER
            has_lower |= cases[code_point] == LOWER
            position += width
    return joined[:size], has_upper and not has_lower


@numba.njit(cache=True)
def _count(text, model, counts, touched):
    """Count n-grams; return how many different ones there are.

    Four quarters of the text are read at the same time, since each step of the automaton waits for
    the one before. A quarter starts in the state that the last bytes before it lead to: as many as
    the longest n-gram has.

    Args:
        text: uint8, bytes.
        model: of `_model`.
        counts: int32 [n-grams + 1], to be increased; that of no n-gram is never 0.
        touched: int32, to be set to the n-grams found.
    """
    moves = model.moves
    rows = model.rows
    features = model.features
    size = len(text) // 4
    first = second = third = fourth = np.uint32(0)  # states in the quarters of the text
    for place in range(max(size - _LONGEST, 0), size):
        second = moves[rows[second], text[place]]
    for place in range(max(2 * size - _LONGEST, 0), 2 * size):
        third = moves[rows[third], text[place]]
    for place in range(max(3 * size - _LONGEST, 0), 3 * size):
        fourth = moves[rows[fourth], text[place]]
    num_features = 0
    for place in range(size):
        first = moves[rows[first], text[place]]
        second = moves[rows[second], text[place + size]]
        third = moves[rows[third], text[place + 2 * size]]
        fourth = moves[rows[fourth], text[place + 3 * size]]
        for state in (first, second, third, fourth):
            feature = features[state]
            # A known n-gram is overwritten by the next one. A branch would be mispredicted often.
            touched[num_features] = feature
            num_features += counts[feature] == 0
            counts[feature] += 1
    for place in range(4 * size, len(text)):
        fourth = moves[rows[fourth], text[place]]
        feature = features[fourth]
        touched[num_features] = feature
        num_features += counts[feature] == 0
        counts[feature] += 1
    return num_features
