"""The page of pretraining records: counts, lengths, examples, and their corpus."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

from bert_tf.base.wording import quantity
from bert_tf.tasks.base.report_sections import CellKind, Section, TableSection
from pipeline.report.document import (
    folded,
    section_html,
    sentence_case,
    table_html,
    tiles_html,
)
from pipeline.report.records import ShownExample, ShownToken, SplitSummary, summarize_records

_LEGEND = (
    '<p><span class="target mask">masked<small> → target</small></span> '
    '<span class="target random">replaced at random<small> → target</small></span> '
    '<span class="target kept">unchanged, but predicted</span></p>'
)


_RULE_COLUMNS: tuple[tuple[str, CellKind], ...] = (
    ("rule", "text"), ("keeps", "text"), ("dropped", "count"), ("of", "text"), ("of all", "share"),
)  # fmt: skip
_MOST_NAMES = 8  # of languages, domains and licenses
# Counts of the manifest that a reader asks for first.
_TILES = ("documents", "sentences", "tokens")


def records_sections(
    folder: Path, manifest: Mapping[str, Any], *, samples: int
) -> list[Section | str]:
    """Lay out records and their corpus; raise UsageError and InputError for damaged ones."""
    summaries = summarize_records(folder, samples=samples)
    content: list[Section | str] = [tiles_html(_headline(manifest))]
    for number, summary in enumerate(summaries):
        sections = _split_sections(summary)
        if number:  # the held-out records look like those for training
            parts = (part if isinstance(part, str) else section_html(part) for part in sections)
            content.append(
                folded(f"{summary.name} records", f'<div class="sections">{"".join(parts)}</div>')
            )
        else:
            content += sections
    return content + _corpus_sections(folder, manifest, samples=samples)


def _headline(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return the counts and measures of the manifest that describe the amount and kind of data."""
    counts = manifest.get("counts", {})
    metrics = manifest.get("metrics", {})
    tiles = {name: f"{counts[name]:,}" for name in _TILES if name in counts}
    for split, number in counts.get("examples", {}).items():
        tiles[f"{split} records"] = f"{number:,}"
    if "unknown_fraction" in metrics:
        tiles["[UNK]"] = f"{metrics['unknown_fraction']:.2%}"
    for kind in ("dropped", "rejected"):
        number = sum(counts.get(kind, {}).values())
        if number:
            tiles[kind] = f"{number:,}"
    return tiles


def _split_sections(summary: SplitSummary) -> list[Section | str]:
    """Lay out a split: facts, histograms side by side, frequent tokens, examples."""
    facts = "".join(f"<p>{escape(sentence_case(fact))}.</p>" for fact in summary.facts)
    content: list[Section | str] = [
        f"<div><h2>{escape(sentence_case(summary.name))} records</h2>{facts}</div>"
    ]
    content += [section_html(histogram, level=3) for histogram in summary.histograms]
    if summary.frequent:
        tokens = TableSection(
            title="Most frequent tokens",
            columns=(("token", "text"), ("of tokens", "share")),
            rows=summary.frequent,
        )
        content.append(folded(tokens.title, table_html(tokens)))
    examples = "".join(map(_example_html, summary.examples))
    if examples:
        content.append(f"<div><h3>Examples</h3>{_LEGEND}{examples}</div>")
    return content


def _example_html(example: ShownExample) -> str:
    segments = "".join(
        f"<p><b>{escape(name)}</b> {_segment_html(tokens)}</p>" for name, tokens in example.segments
    )
    return f"<h4>{escape(example.title)}</h4>{segments}"


def _segment_html(tokens: list[ShownToken]) -> str:
    """Render tokens as text: pieces that continue a word follow without a space."""
    pieces = map(_token_html, tokens)
    parts = (piece[2:] if piece.startswith("##") else f" {piece}" for piece in pieces)
    return "".join(parts).lstrip()


def _token_html(token: ShownToken) -> str:
    text = escape(token.text)
    if token.target is None:
        return text
    if token.target == token.text:
        return f'<span class="target kept">{text}</span>'
    kind = "mask" if token.text == "[MASK]" else "random"
    target = escape(token.target)
    return f'<span class="target {kind}">{text}<small> → {target}</small></span>'


def _corpus_sections(
    folder: Path, manifest: Mapping[str, Any], *, samples: int
) -> list[Section | str]:
    """Lay out the evidence in the manifest, then the corpus itself if it is unchanged."""
    from pipeline.report.corpus.page import corpus_of_records, corpus_sections  # readers, with Beam

    content: list[Section | str] = []
    if "rules" in manifest:
        content += _evidence(manifest, samples=samples)
    corpus = corpus_of_records(folder, manifest)
    if isinstance(corpus, str):
        return [*content, f'<p class="note">{escape(corpus)}</p>']
    return [*content, *corpus_sections(corpus, samples=samples)]


def _evidence(manifest: Mapping[str, Any], *, samples: int) -> Iterator[Section | str]:
    """Lay out the effects of rules; the table of all rules is folded."""
    from pipeline.report.corpus.evidence import (
        count_tables,
        length_histogram,
        rule_table,
        sample_sections,
        tally_tables,
    )

    yield from (table for table in count_tables(manifest) if table.rows)
    lengths = length_histogram(manifest)
    if lengths is not None:
        yield lengths
    for table in tally_tables(manifest):
        if table.rows:
            yield from _tally(table)
    rules = rule_table(manifest)
    names = [name for name, _ in rules.columns]
    dropped = names.index("dropped")
    yield TableSection(
        title="Rules that dropped text",
        columns=_RULE_COLUMNS,
        rows=[
            [row[names.index(name)] for name, _ in _RULE_COLUMNS]
            for row in rules.rows
            if row[dropped]
        ],
        note=rules.note,
    )
    yield folded(f"All {quantity(len(rules.rows), 'rule')}", table_html(rules))
    samples_of_rules = "".join(
        section_html(section, level=3) for section in sample_sections(manifest, most=samples)
    )
    if samples_of_rules:
        yield folded("Samples of dropped text", samples_of_rules)


def _tally(table: TableSection) -> Iterator[Section | str]:
    """Show the most frequent names of a tally with their shares, and fold the others away."""
    total = sum(number for _, number in table.rows)
    section = dataclasses.replace(
        table,
        columns=(*table.columns, ("of all", "share")),
        rows=[[name, number, number / total] for name, number in table.rows],
    )
    yield dataclasses.replace(section, rows=section.rows[:_MOST_NAMES])
    more = section.rows[_MOST_NAMES:]
    if more:
        rest = dataclasses.replace(section, rows=more, title=f"{table.title}, the others")
        yield folded(f"{len(more):,} more {table.title.lower()}", table_html(rest))
