"""What decides between the spans of a context, besides their scores."""

from __future__ import annotations

import dataclasses

# The null odds of a context without a token, where there is no span to compare with.
NO_SPAN_ODDS = 1e9


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnswerRules:
    """How the answer is chosen from spans and the null score; the same in NumPy and in graphs.

    Attributes:
        may_be_unanswerable: whether a question may be left without an answer.
        null_threshold: there is no answer if the null odds, the null score minus the best span's
            score, exceed this.
        sentence_margin: a span that runs over the end of a sentence yields to the best span within
            a sentence whose score is lower by at most this; 0 for never.
    """

    may_be_unanswerable: bool
    null_threshold: float
    sentence_margin: float
