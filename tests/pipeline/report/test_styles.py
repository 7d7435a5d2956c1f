"""The colors of pages can be told apart, by the Web Content Accessibility Guidelines 2.2."""

import itertools
import re

import pytest

from pipeline.report.document import style_sheet
from pipeline.report.runs import COLORS

_TEXT, _GRAPHICS = 4.5, 3.0  # least contrast (1.4.3 and 1.4.11)


def schemes():
    """Return the color variables of the light and of the dark scheme."""
    blocks = re.findall(r":root \{(.*?)\}", style_sheet("page"), re.DOTALL)
    found = [dict(re.findall(r"(--[a-z]+): (#[0-9a-f]{3,6});", block)) for block in blocks]
    assert len(found) == 2 and found[0].keys() == found[1].keys()
    return found


def luminance(color):
    digits = color[1:] if len(color) == 7 else "".join(2 * digit for digit in color[1:])
    channels = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in channels
    ]
    return sum(
        weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True)
    )


def contrast(one, other):
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_texts_and_graphics_stand_out(scheme):
    colors = schemes()[scheme]
    for text, ground in itertools.product(("--text", "--soft", "--warn"), ("--ground", "--raised")):
        assert contrast(colors[text], colors[ground]) >= _TEXT, (text, ground)
    for mark in ("--right", "--missed", "--wrong", "--both"):
        assert contrast(colors["--text"], colors[mark]) >= _TEXT, mark
    for drawn in ("--bar", "--part", "--accent"):
        assert contrast(colors[drawn], colors["--ground"]) >= _GRAPHICS, drawn
    for color in (each[scheme] for each in COLORS):
        assert contrast(color, colors["--ground"]) >= _TEXT, color
