"""Which words of a row are to be predicted: single ones, n-grams or spans; numba code.

All choosers mark the positions of the words they take in `group`, int32 [row length], which is 0
everywhere before: with numbers above 0, equal where tokens share a replacement.
"""

from __future__ import annotations

import numba
import numpy as np

from bert_tf.data.examples.random_numbers import next_below, next_unit

_SPAN_P = 0.2
_MAX_SPAN_WORDS = 10


@numba.njit(cache=True, nogil=True)
def find_words(ids, begins, length, never_masked, starts, ends):
    """Fills in where words begin and end, int32 both; returns their number."""
    num_words = 0
    in_word = False
    for position in range(length):
        if never_masked[ids[position]]:
            in_word = False
        elif in_word and not begins[position]:
            ends[num_words - 1] = position + 1
        else:
            starts[num_words] = position
            ends[num_words] = position + 1
            num_words += 1
            in_word = True
    return num_words


@numba.njit(cache=True, nogil=True)
def choose_words(starts, ends, num_words, num_targets, group, state):
    """Takes random words until `num_targets` tokens are marked; shuffles both arrays."""
    marked = 0
    for i in range(num_words):
        if marked >= num_targets:
            return
        j = i + next_below(state, num_words - i)
        starts[i], starts[j] = starts[j], starts[i]
        ends[i], ends[j] = ends[j], ends[i]
        if marked + ends[i] - starts[i] <= num_targets:
            marked += ends[i] - starts[i]
            for position in range(starts[i], ends[i]):
                group[position] = position + 1


@numba.njit(cache=True, nogil=True)
def choose_ngrams(starts, ends, num_words, num_targets, max_size, group, state):
    """Takes random runs of words, length n with weight 1 / n, that do not overlap."""
    candidates = np.empty((max_size, num_words), np.int32)
    left = np.zeros(max_size, np.int64)
    run = 0
    for word in range(num_words):
        run = run + 1 if word > 0 and starts[word] == ends[word - 1] else 1
        for size in range(1, min(run, max_size) + 1):
            candidates[size - 1, left[size - 1]] = word - size + 1
            left[size - 1] += 1
    weights = 0.0
    for size in range(1, max_size + 1):
        weights += 1.0 / size
    marked = 0
    number = 0
    while marked < num_targets and left.any():
        size = 1
        draw = next_unit(state) * weights - 1.0
        while draw >= 0.0 and size < max_size:
            size += 1
            draw -= 1.0 / size
        if marked + size > num_targets:
            left[size - 1] = 0
        if left[size - 1] == 0:
            continue
        left[size - 1] -= 1
        i = next_below(state, left[size - 1] + 1)
        first = candidates[size - 1, i]
        candidates[size - 1, i] = candidates[size - 1, left[size - 1]]
        begin, end = starts[first], ends[first + size - 1]
        if marked + end - begin > num_targets or group[begin:end].any():
            continue
        number += 1
        group[begin:end] = number
        marked += end - begin


@numba.njit(cache=True, nogil=True)
def choose_spans(starts, ends, num_words, num_targets, group, state):
    """Takes random words, each with the words after it, up to a geometric number in all."""
    anchors = np.empty(len(group), np.int32)
    tokens = 0
    for word in range(num_words):
        for _ in range(starts[word], ends[word]):
            anchors[tokens] = word
            tokens += 1
    longest = 1.0 - (1.0 - _SPAN_P) ** _MAX_SPAN_WORDS
    marked = 0
    for i in range(tokens):
        if marked >= num_targets:
            return
        j = i + next_below(state, tokens - i)
        anchors[i], anchors[j] = anchors[j], anchors[i]
        first = anchors[i]
        if group[starts[first]] != 0:
            continue
        draw = np.log(1.0 - next_unit(state) * longest) / np.log(1.0 - _SPAN_P)
        words = min(1 + np.int64(draw), _MAX_SPAN_WORDS)
        for word in range(first, min(first + words, num_words)):
            if word > first and starts[word] != ends[word - 1]:
                break
            if group[starts[word]] != 0:
                continue
            if marked + ends[word] - starts[word] > num_targets:
                break
            group[starts[word] : ends[word]] = 1
            marked += ends[word] - starts[word]
