"""Curves are where their numbers are, long ones as means that keep their area."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.report.plots import Line, line_plot, short, thinned


def line(x, y, kind="eval", name="a"):
    return Line(owner=0, name=name, kind=kind, x=np.array(x, float), y=np.array(y, float))


def test_marks_are_on_their_curve_and_in_proportion():
    drawn = line_plot("T", "step", [line([0, 10, 40], [1.0, 3.0, 2.0], name="<b>")])
    marks = np.array(re.findall(r'cx="(.+?)" cy="(.+?)"', drawn), float)
    (path,) = re.findall(r'class="curve eval of-0" d="M(.+?)"', drawn)
    assert marks.tolist() == [[float(n) for n in pair.split()] for pair in path.split("L")]
    assert (marks[1, 0] - marks[0, 0]) * 4 == pytest.approx(marks[2, 0] - marks[0, 0], abs=0.3)
    assert marks[0, 1] > marks[2, 1] > marks[1, 1], "the highest value is at the top"
    assert "<title>&lt;b&gt;, 10: 3</title>" in drawn and "<b>" not in drawn


@given(
    st.lists(st.floats(-1e30, 1e30), min_size=1, max_size=5),
    st.sampled_from(["train", "eval", "level"]),
)
def test_any_numbers_have_a_plot(values, kind):
    drawn = line_plot("T", "step", [line(range(len(values)), values, kind)])
    assert "nan" not in drawn and "inf" not in drawn
    assert drawn.count("<circle") == (len(values) if kind == "eval" or len(values) == 1 else 0)


@pytest.mark.parametrize("count", [300, 301, 1000, 12_345])
def test_long_curves_are_means_of_their_parts(count):
    values = np.random.default_rng(count).normal(size=count)
    short_one = thinned(line(np.arange(count), values))
    sizes = np.array([len(part) for part in np.array_split(values, 300)])
    assert len(short_one.x) == 300 and (np.diff(short_one.x) > 0).all()
    assert short_one.y.mean() == pytest.approx(values.mean(), abs=2 * values.std() / sizes.min())
    if count % 300 == 0:
        assert short_one.y == pytest.approx(values.reshape(300, -1).mean(axis=1))


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.25, "0.25"), (2e-5, "2e-05"), (1500, "1.5k"), (2e6, "2M"), (-3e9, "-3G")],
)
def test_ticks_are_short(value, shown):
    assert short(value) == shown
