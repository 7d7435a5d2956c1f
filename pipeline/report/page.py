"""An artifact as one HTML page that needs nothing beside it."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path

from bert_tf.training.run.metrics_file import read_metrics
from pipeline.report.artifact import (
    content_lines,
    foreign_headline,
    headline,
    is_foreign_model,
    model_lines,
    require_manifest,
)
from pipeline.report.curve_plot import plot_curves
from pipeline.report.document import GENERATOR
from pipeline.report.manifest_facts import input_facts, measured_facts, setting_facts
from pipeline.report.records import (
    Histogram,
    ShownExample,
    ShownToken,
    SplitSummary,
)

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em;
  color: #222; background: #fff; }
h1 { font-size: 1.3em; } h2 { font-size: 1.1em; margin-top: 2em; } h3 { font-size: 1em; }
table { border-collapse: collapse; } td { padding: 0.1em 1em 0.1em 0; vertical-align: top; }
.bars td { padding: 0 0.6em 0 0; text-align: right; white-space: nowrap; }
.bars .bar { text-align: left; width: 30em; }
.bar span { display: inline-block; height: 0.8em; background: #4878a8; }
.mask { background: #ffe08a; } .random { background: #ffb3a7; } .kept { background: #c9e7c3; }
.target { border-radius: 0.2em; padding: 0 0.2em; } .target small { color: #555; }
pre { overflow-x: auto; background: #f5f5f5; padding: 0.6em; }
.examples p { margin: 0.2em 0 0.6em 1em; }
"""
_LEGEND = (
    '<p><span class="target mask">masked<small> → target</small></span> '
    '<span class="target random">replaced at random<small> → target</small></span> '
    '<span class="target kept">to be predicted, left as it is</span></p>'
)


def artifact_page(path: str, *, samples: int) -> str:
    """The description that `inspect` gives of an artifact, as HTML with plots.

    Args:
        path: file or folder with a manifest.
        samples: examples, rows or entries to show.

    Raises:
        UsageError, InputError: as `inspect`.
    """
    if is_foreign_model(path):
        lines = model_lines(Path(path))
        return _html(foreign_headline(path), _preformatted(lines))
    manifest = require_manifest(path)
    command = manifest.get("command")
    if command == "preprocess":
        from pipeline.report.records import summarize_records  # TensorFlow, which reads records

        summaries = summarize_records(path, samples=samples)
        content = "".join(_split_html(summary) for summary in summaries)
    elif command in ("train", "finetune"):
        content = plot_curves(read_metrics(Path(path) / "metrics.jsonl"))
    else:
        content = _preformatted(content_lines(manifest, Path(path), samples=samples))
    sections = [
        ("counts", _joined(measured_facts(manifest.get("counts", {})))),
        ("metrics", _joined(measured_facts(manifest.get("metrics", {})))),
        ("config", _joined(setting_facts(manifest.get("config", {})))),
        ("inputs", input_facts(manifest.get("inputs", []))),
        ("seconds", _joined(measured_facts(manifest.get("timings", {})))),
        ("versions", _joined(setting_facts(manifest.get("versions", {})))),
    ]
    tables = "".join(f"<h2>{name}</h2>{_table(facts)}\n" for name, facts in sections if facts)
    return _html(headline(path, manifest), f"{content}\n{tables}")


def _html(title: str, body: str) -> str:
    return (
        f'<!DOCTYPE html>\n<html lang="en"><meta charset="utf-8">{GENERATOR} inspect">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style>\n<h1>{escape(title)}</h1>\n{body}</html>\n"
    )


def _preformatted(lines: list[str]) -> str:
    return f"<pre>{escape(chr(10).join(lines))}</pre>" if lines else ""


def _joined(facts: list[tuple[tuple[str, ...], str]]) -> list[tuple[str, str]]:
    return [(" ".join(path), text) for path, text in facts]


def _table(rows: Iterable[tuple[str, str]]) -> str:
    cells = "".join(f"<tr><td>{escape(key)}<td>{escape(value)}" for key, value in rows)
    return f"<table>{cells}</table>"


def _split_html(summary: SplitSummary) -> str:
    facts = "".join(f"<p>{escape(fact)}</p>" for fact in summary.facts)
    plots = "".join(map(_histogram_html, summary.histograms))
    if summary.frequent:
        plots += _histogram_html(Histogram("most frequent tokens", summary.frequent))
    examples = "".join(map(_example_html, summary.examples))
    if examples:
        examples = f'<div class="examples"><h3>examples</h3>{_LEGEND}{examples}</div>'
    return f"<h2>{escape(summary.name)}</h2>{facts}{plots}{examples}"


def _histogram_html(histogram: Histogram) -> str:
    highest = max(fraction for _, fraction in histogram.bars) or 1.0
    rows = "".join(
        f"<tr><td>{escape(label)}<td>{fraction:.1%}"
        f'<td class="bar"><span style="width:{100 * fraction / highest:.1f}%"></span>'
        for label, fraction in histogram.bars
    )
    return f'<h3>{escape(histogram.title)}</h3><table class="bars">{rows}</table>'


def _example_html(example: ShownExample) -> str:
    segments = "".join(
        f"<p><b>{escape(name)}</b> {_segment_html(tokens)}</p>" for name, tokens in example.segments
    )
    return f"<h4>{escape(example.title)}</h4>{segments}"


def _segment_html(tokens: list[ShownToken]) -> str:
    return " ".join(map(_token_html, tokens)).replace(" ##", "")


def _token_html(token: ShownToken) -> str:
    text = escape(token.text)
    if token.target is None:
        return text
    if token.target == token.text:
        return f'<span class="target kept">{text}</span>'
    kind = "mask" if token.text == "[MASK]" else "random"
    target = escape(token.target)
    return f'<span class="target {kind}">{text}<small> → {target}</small></span>'
