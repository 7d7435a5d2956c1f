"""Rows to calls of an engine and back, without any library that runs models."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.base.errors import InputError
from bert_tf.engines.engine import (
    CallingEngine,
    encoded_lists,
    encoded_texts,
    row_bytes,
    similar_rows,
)


class ToyEngine(CallingEngine):
    """Computes texts, and lists of texts in the column `list`, by a function."""

    path = Path("m")
    list_inputs = ("list",)

    def __init__(self, *input_names, function):
        self.input_names = input_names
        self._function = function

    def call(self, inputs, batch_tokens, on_tokens):
        """See `CallingEngine.call`."""
        return self._function(inputs)


@given(st.lists(st.integers(0, 3_000_000), max_size=700), st.integers(1, 3))
def test_every_row_is_in_one_call_and_calls_are_small(sizes, dealt_among):
    sizes = np.array(sizes, np.int64)
    calls = similar_rows(sizes, dealt_among=dealt_among)
    assert sorted(np.concatenate(calls)) == list(range(len(sizes)))
    biggest_first = np.concatenate([np.sort(-sizes[call]) for call in calls])
    if dealt_among == 1:
        assert (np.diff(biggest_first) >= 0).all()
    for call in calls:
        assert len(call) <= 256
        odd_row = sizes[call].max(initial=0) if dealt_among > 1 else 0
        assert len(call) <= 1 or sizes[call].sum() <= (1 << 20) + odd_row


def test_calls_side_by_side_have_equal_work():
    sizes = np.random.default_rng(1).integers(1, 400, 1000)
    work = [sizes[call].sum() for call in similar_rows(sizes, dealt_among=2)]
    assert len(work) == 4
    for left, right in zip(work[::2], work[1::2], strict=True):
        assert abs(left - right) <= 400


@given(st.lists(st.tuples(st.text(max_size=9), st.text(max_size=9)), max_size=600))
def test_outputs_are_in_the_order_of_the_rows(rows):
    columns = {"left": [left for left, _ in rows], "right": [right for _, right in rows]}
    seen = []

    def join(texts):
        pairs = zip(texts["left"], texts["right"], strict=True)
        return {"joined": np.array([(left + b"|" + right).decode() for left, right in pairs], "O")}

    outputs = ToyEngine("left", "right", function=join).predict(columns, on_rows=seen.append)
    assert outputs["joined"].tolist() == [f"{left}|{right}" for left, right in rows]
    assert sum(seen) == len(rows)


@given(st.lists(st.tuples(st.text(max_size=9), st.lists(st.text(max_size=3))), max_size=300))
def test_lists_are_as_wide_as_the_longest_in_every_call(rows):
    columns = {"text": [text for text, _ in rows], "list": [texts for _, texts in rows]}
    width = max([1, *(len(texts) for _, texts in rows)])

    def call(texts):
        assert texts["list"].shape == (len(texts["text"]), width)
        return {
            "text": np.array([text.decode() for text in texts["text"]], "O"),
            "list": np.vectorize(bytes.decode, otypes=["O"])(texts["list"]),
        }

    outputs = ToyEngine("text", "list", function=call).predict(columns)
    assert outputs["text"].tolist() == columns["text"]
    filled_up = [texts + [""] * (width - len(texts)) for texts in columns["list"]]
    assert outputs["list"].tolist() == filled_up


def test_a_text_counts_with_each_text_of_a_list():
    columns = [encoded_texts(["abc", "abc"]), encoded_lists([["de", "fgh"], ["x"]])]
    assert row_bytes(columns).tolist() == [2 * 3 + 5, 3 + 1]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_scores_that_are_no_numbers_are_refused(bad):
    def call(texts):
        return {"score": np.array([0.5, bad], np.float32)}

    with pytest.raises(InputError, match="m: score is not a number for some rows"):
        ToyEngine("text", function=call).predict({"text": ["a", "b"]})


def test_an_engine_needs_no_tensorflow():
    code = (
        "import sys\n"
        "import bert_tf.engines.engine, bert_tf.config.bert_file, bert_tf.engines.registry\n"
        "sys.exit(', '.join(sorted({'tensorflow', 'keras'} & set(sys.modules))) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
