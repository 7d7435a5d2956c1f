"""Summaries of pretraining records as lines for a terminal."""

from __future__ import annotations

from pipeline.report.records import Histogram, ShownExample, ShownToken, SplitSummary

_BAR_WIDTH = 40


def record_lines(summaries: list[SplitSummary]) -> list[str]:
    """Facts, histograms, frequent tokens and examples of each split.

    A masked token is shown as `[MASK→cat]`, one replaced at random as `[dog→cat]` and one to be
    predicted but left as it is as `[cat]`; `##` tokens are joined to their words.
    """
    lines = []
    for summary in summaries:
        lines += [f"{summary.name}: {fact}" for fact in summary.facts]
        for histogram in summary.histograms:
            lines += histogram_lines(histogram, summary.name)
        if summary.frequent:
            tokens = (f"{token} {fraction:.1%}" for token, fraction in summary.frequent)
            lines.append(f"{summary.name}: most frequent: {', '.join(tokens)}")
        for example in summary.examples:
            lines += _example_lines(example)
    return lines


def histogram_lines(histogram: Histogram, split: str) -> list[str]:
    """A title, and a line with a bar for each range."""
    lines = [f"{split}: {histogram.title}"]
    for label, fraction in histogram.bars:
        lines.append(
            f"  {label:>10}: {fraction:6.1%} {'#' * round(fraction * _BAR_WIDTH)}".rstrip()
        )
    return lines


def _example_lines(example: ShownExample) -> list[str]:
    lines = [example.title]
    for name, tokens in example.segments:
        text = " ".join(map(_token_text, tokens)).replace(" ##", "")
        lines.append(f"  {name + ':':8}{text}")
    return lines


def _token_text(token: ShownToken) -> str:
    if token.target is None:
        return token.text
    if token.target == token.text:
        return f"[{token.text}]"
    shown = "MASK" if token.text == "[MASK]" else token.text
    return f"[{shown}→{token.target}]"
