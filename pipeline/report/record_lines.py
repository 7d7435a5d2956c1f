"""Summaries of pretraining records as lines for a terminal."""

from __future__ import annotations

from pipeline.report.records import Histogram, ShownExample, ShownPiece, SplitSummary

_BAR_WIDTH = 40


def record_lines(summaries: list[SplitSummary]) -> list[str]:
    """Facts, histograms, frequent pieces and examples of each split.

    A masked piece stands as `[MASK→cat]`, one replaced at random as `[dog→cat]` and one to be
    predicted but left as it is as `[cat]`; `##` pieces are joined to their words.
    """
    lines = []
    for summary in summaries:
        lines += [f"{summary.name}: {fact}" for fact in summary.facts]
        for histogram in summary.histograms:
            lines += histogram_lines(histogram, summary.name)
        if summary.frequent:
            pieces = (f"{piece} {share:.1%}" for piece, share in summary.frequent)
            lines.append(f"{summary.name}: most frequent: {', '.join(pieces)}")
        for example in summary.examples:
            lines += _example_lines(example)
    return lines


def histogram_lines(histogram: Histogram, split: str) -> list[str]:
    """A title, and a line with a bar for each range."""
    lines = [f"{split}: {histogram.title}"]
    for label, share in histogram.bars:
        lines.append(f"  {label:>10}: {share:6.1%} {'#' * round(share * _BAR_WIDTH)}".rstrip())
    return lines


def _example_lines(example: ShownExample) -> list[str]:
    lines = [example.title]
    for name, pieces in example.segments:
        text = " ".join(map(_piece_text, pieces)).replace(" ##", "")
        lines.append(f"  {name + ':':8}{text}")
    return lines


def _piece_text(piece: ShownPiece) -> str:
    if piece.target is None:
        return piece.text
    if piece.target == piece.text:
        return f"[{piece.text}]"
    shown = "MASK" if piece.text == "[MASK]" else piece.text
    return f"[{shown}→{piece.target}]"
