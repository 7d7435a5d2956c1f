import re

import numpy as np
import pytest

from bert_tf.tasks.base.report_sections import PlotSection
from pipeline.report.plots import scatter_plot, ticks


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0, 5, [0, 1, 2, 3, 4, 5]),
        (-30, 27, [-30, -20, -10, 0, 10, 20]),
        (1.25, 1.26, [1.25, 1.252, 1.254, 1.256, 1.258, 1.26]),
    ],
)
def test_ticks_are_round_numbers_within_the_bounds(low, high, expected):
    assert ticks(low, high).tolist() == pytest.approx(expected)
    assert not np.signbit(ticks(low, high)[ticks(low, high) == 0]).any(), "no -0"


def plot(x, y, **values):
    drawn = scatter_plot(
        PlotSection(title="T", x_title="<x>", y_title="y", x=np.array(x), y=np.array(y), **values)
    )
    circles = re.findall(r'<circle class="point" cx="(.+?)" cy="(.+?)" r="(.+?)"/>', drawn)
    return drawn, np.array(circles, float)


def test_points_are_where_their_numbers_are():
    drawn, circles = plot([0.0, 1.0, 0.5], [0.0, 1.0, 0.5], bounds=(0.0, 1.0), has_diagonal=True)
    assert circles[2, :2] == pytest.approx(circles[:2, :2].mean(axis=0), abs=0.1)
    assert circles[0, 0] < circles[1, 0] and circles[0, 1] > circles[1, 1]
    ends = [number for pair in circles[:2, :2].tolist() for number in pair]
    assert f'd="M{ends[0]} {ends[1]}L{ends[2]} {ends[3]}"' in drawn
    assert "&lt;x&gt;" in drawn and "<x>" not in drawn


def test_areas_are_proportional_to_weights():
    _, circles = plot([0.0, 1.0], [0.0, 1.0], weights=np.array([100.0, 25.0]))
    assert circles[0, 2] == pytest.approx(2 * circles[1, 2])


def test_a_single_point_has_axes():
    _, circles = plot([3.0], [7.0])
    assert np.isfinite(circles).all()


@pytest.mark.parametrize("value", [0.0, 3.5, -1.6e18, 1e30])
def test_equal_values_have_bounds_around_them(value):
    _, circles = plot([value, value], [value, value])
    assert len(circles) == 2
    assert np.isfinite(circles).all()
