"""The picture of a head has the cells of its attention, whatever the tokens are called."""

import re

import numpy as np

from pipeline.report.texts_page import attention_svg, attention_words


def test_every_cell_is_drawn_with_its_strength():
    drawn = np.random.default_rng(2)
    attention = drawn.dirichlet(np.full(9, 0.2), size=9)
    html = attention_svg(attention, [f"<{place}>" for place in range(9)], 'a "name"')
    assert "<0>" not in html
    shown = np.zeros((9, 9))
    for opacity, path in re.findall(r'fill-opacity="([\d.]+)" d="([^"]+)"', html):
        for x, y, width in re.findall(r"M(\d+) (\d+)h(\d+)v1h-\3z", path):
            cells = shown[int(y), int(x) : int(x) + int(width)]
            assert not cells.any(), "no cell is drawn twice"
            cells[:] = float(opacity)
    assert np.abs(shown - attention).max() <= 1 / 16 + 1e-9


def test_the_strongest_pattern_is_named():
    tokens = ["[CLS]", "a", "b", "c", "[SEP]"]
    assert attention_words(np.eye(5), tokens) == "100% on the token itself"
    before = np.eye(5, k=-1)
    before[0, 0] = 1.0
    assert attention_words(before, tokens) == "100% on the token before"
    last = np.zeros((5, 5))
    last[:, -1] = 1.0
    assert attention_words(last, tokens) == "100% on [SEP]"
    both = np.zeros((5, 5))
    both[:, [2, 4]] = 0.5
    assert attention_words(both, ["[CLS]", "a", "[SEP]", "b", "[SEP]"]) == "100% on [SEP]"
