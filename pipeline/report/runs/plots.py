"""The curves of runs as HTML: a color for each run, and a box in the key that hides its curves."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from pipeline.report.line_plot import line_plot
from pipeline.report.runs.curves import Plot, run_plots
from pipeline.report.runs.run import Run
from pipeline.report.section_html import table_html

COLORS = (  # on the light and on the dark ground, at a contrast of 4.5 or more
    ("#1f5fa8", "#6ba7ec"), ("#b3450c", "#f59f6b"), ("#1b7a43", "#63c78b"),
    ("#8a2b8a", "#d79be0"), ("#806000", "#d9b44a"), ("#0b7285", "#4fc3d4"),
    ("#c2255c", "#f48fb1"), ("#495057", "#b8c0cc"),
)  # fmt: skip
_STYLE = """
.key { border: 1px solid var(--line); border-radius: .4rem; margin: 1.2rem 0; padding: .4rem .8rem;
  display: flex; flex-wrap: wrap; gap: .2rem 1.4rem; background: var(--ground); }
.key legend { color: var(--soft); padding: 0 .3rem; } .key p { flex-basis: 100%; margin: 0; }
.key label { display: inline-flex; align-items: center; gap: .4rem; overflow-wrap: anywhere; }
.key label::before { content: ""; flex: none; width: 1.4rem; height: .25rem;
  background: var(--run); }
.plots { display: grid; gap: 1.2rem 1.5rem; align-items: start;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); }
.plots h3 { margin: 0; overflow-wrap: anywhere; } .plots > div { min-width: 0; }
svg .curve { stroke: var(--run); stroke-linejoin: round; }
svg .train { stroke-width: 1.2; } svg .curve.eval { stroke-width: 2.4; }
svg .level { stroke-width: 1.4; stroke-dasharray: 6 4; }
svg .mark { fill: var(--run); stroke: var(--ground); }
@media (min-width: 60rem) { .key { position: sticky; top: 0; z-index: 1; } }
"""


def plots_style(runs: int) -> str:
    """The CSS of `plots_html`, and `--run` as the color of whatever is `of-N`."""
    return _STYLE + "".join(map(_run_style, range(runs)))


def plots_html(runs: Sequence[Run]) -> str:
    """The key and a section for each group of metrics; nothing of no runs."""
    if not runs:
        return ""
    groups = (_plots_html(group, plots) for group, plots in run_plots(runs).items())
    return "".join([_key(runs), *groups])


def _run_style(number: int) -> str:
    light, dark = COLORS[number]
    return (
        f".of-{number} {{ --run: {light}; }}\n"
        f"@media (prefers-color-scheme: dark) {{ .of-{number} {{ --run: {dark}; }} }}\n"
        f"main:has(#run-{number}:not(:checked)) svg .of-{number} {{ display: none; }}\n"
    )


def _key(runs: Sequence[Run]) -> str:
    labels = "".join(
        f'<label class="of-{number}"><input type="checkbox" id="run-{number}" checked>'
        f"{escape(run.name)}</label>"
        for number, run in enumerate(runs)
    )
    has_level = any("unigram_entropy" in line for run in runs for line in run.lines)
    level = "; dashed: what token frequencies alone reach" if has_level else ""
    note = f'<p class="note">Thin: training; thick with points: evaluation{level}.</p>'
    if len(runs) == 1:  # nothing to hide it from
        return f"{note}\n"
    return f'<fieldset class="key"><legend>Shown runs</legend>{labels}{note}</fieldset>\n'


def _plots_html(title: str, plots: Sequence[Plot]) -> str:
    drawn = "".join(
        f"<div><h3>{escape(plot.name)}</h3>"
        f"<figure>{line_plot(plot.name, 'step', plot.lines)}</figure>"
        f"<details><summary>{escape(plot.table.title)}</summary>{table_html(plot.table)}"
        "</details></div>"
        for plot in plots
    )
    return f'<section><h2>{title}</h2><div class="plots">{drawn}</div></section>\n'
