"""Behavior of every engine on rows of texts."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from bert_tf.base.errors import InputError
from bert_tf.engines.engine import Engine

_BUDGETS = (1, 64, 1 << 16)  # tokens per batch: a row each, some rows, all of them


def check_engine(engine: Engine, columns: dict[str, list[Any]], *, diverged: Engine) -> None:
    """Check the behavior that all engines share.

    Rows keep their order and do not influence each other: any order of them, any number of tokens
    per batch, a row alone and several threads at once give the same outputs. All rows are reported
    as done, each once; outputs have the declared types; columns of other names are of no account;
    no rows at all give outputs without rows; and scores that are not numbers are an error that
    names the model.

    Args:
        engine: to check.
        columns: several different rows by the names of its inputs, with an empty text among them.
        diverged: the same with weights that are not numbers.
    """
    assert set(engine.input_names) == columns.keys()
    rows = len(columns[engine.input_names[0]])
    assert rows > 2 and any("" in texts for texts in columns.values())

    expected = engine.predict(columns)
    assert expected
    for name, values in expected.items():
        assert isinstance(values, np.ndarray) and len(values) == rows, name
        assert values.dtype == np.float32 or values.dtype.kind in "iO", name

    for budget in _BUDGETS:
        seen: list[int] = []
        found = engine.predict(columns, batch_tokens=budget, on_rows=seen.append)
        assert sum(seen) == rows and min(seen) > 0
        _check_same(found, expected)
    for order in (range(rows)[::-1], [row for _ in range(2) for row in range(rows)], *_alone(rows)):
        chosen = {name: [texts[row] for row in order] for name, texts in columns.items()}
        found = engine.predict({**chosen, "other": ["not read"] * len(order)})
        _check_same(found, {name: values[list(order)] for name, values in expected.items()})

    with ThreadPoolExecutor(4) as threads:  # as workers of a cluster share one model
        for found in threads.map(engine.predict, [columns] * 8):
            _check_same(found, expected)

    seen = []
    nothing = engine.predict({name: [] for name in columns}, on_rows=seen.append)
    assert sum(seen) == 0
    assert nothing.keys() == expected.keys()
    assert all(len(values) == 0 for values in nothing.values())

    with pytest.raises(InputError, match="the weights are damaged or training diverged"):
        diverged.predict(columns)


def _alone(rows: int) -> list[Sequence[int]]:
    return [[row] for row in range(rows)]


def _check_same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert found[name].dtype == values.dtype, name
        if values.dtype != object:
            # Of lists as long as the longest list of the call, the others with zeros at the end.
            beyond = [
                (0, wide - narrow)
                for wide, narrow in zip(values.shape, found[name].shape, strict=True)
            ]
            filled = np.pad(found[name], beyond)
            np.testing.assert_allclose(filled, values, rtol=1e-4, atol=1e-5, err_msg=name)
            continue
        for one, other in zip(found[name], values, strict=True):
            if isinstance(other, np.ndarray) and other.dtype.kind == "f":
                np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5, err_msg=name)
            elif isinstance(other, list | dict):
                check_same_values(one, other)
            else:
                assert np.array_equal(one, other), name


def check_same_values(found: Any, expected: Any) -> None:
    """Check lists and objects of predictions: numbers are equal up to rounding, all else is."""
    if isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-5, abs=1e-5)
    elif isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            check_same_values(found[name], value)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for ours, theirs in zip(found, expected, strict=True):
            check_same_values(ours, theirs)
    else:
        assert found == expected
