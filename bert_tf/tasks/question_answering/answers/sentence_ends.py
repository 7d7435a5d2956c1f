"""Where a sentence ends inside a text: one pattern for Python and for graphs of TensorFlow."""

from __future__ import annotations

import re

# Read alike by Python's `re` and by RE2, so without lookaround, `\w` and `\s`. A period ends a
# sentence only after three characters that are neither upper case nor dots, so that neither
# initials nor titles (J. R., U.S., St., Mrs.) do, and if no lower case and no digit follow
# (approx. 5).
SENTENCE_END = (
    r"(?:[^ \t\r\nA-Z.]{3}\.|[!?…])"  # the mark
    r"[\"')\]”’»]*[ \t\r\n]+[^ \t\r\na-z0-9]"  # what closes, a blank, what begins
    r"|[。！？]|\n[ \t\r]*\n"  # no blank follows; a paragraph
)
_SENTENCE_END = re.compile(SENTENCE_END)


def runs_over_sentence_end(text: str) -> bool:
    """Whether a sentence ends within a text and another one begins.

    >>> runs_over_sentence_end("in 1873. It lies")
    True
    >>> runs_over_sentence_end("St. Louis.")
    False
    """
    return _SENTENCE_END.search(text) is not None
