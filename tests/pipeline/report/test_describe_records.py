"""The histogram lines of `inspect`."""

import numpy as np
import pytest

from pipeline.report.records import _histogram


@pytest.mark.parametrize(
    ("values", "highest", "lines"),
    [
        ([1, 2, 2], 2, ["1:  33.3% #############", "2:  66.7% ###########################"]),
        ([16, 1], 16, ["1 to 2:  50.0% " + "#" * 20, "15 to 16:  50.0% " + "#" * 20]),
    ],
)
def test_a_histogram_has_a_bar_for_each_range_with_its_share(values, highest, lines):
    title, *bars = _histogram("pieces", np.array(values), highest)
    assert title == "pieces"
    assert [bar.strip() for bar in bars if "0.0% " in bar or "#" in bar] == lines
    assert len(bars) == min(highest, 8)
