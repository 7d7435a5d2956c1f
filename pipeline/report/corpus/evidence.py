"""Evidence on a corpus in the manifest of a job, and as tables of its page and card."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from bert_tf.base.cards import markdown_table
from bert_tf.config.sections.data import CorpusSection
from bert_tf.tasks.base.report_sections import (
    Example,
    ExamplesSection,
    HistogramSection,
    TableSection,
)
from pipeline.corpus.curation.registry import rules_of
from pipeline.corpus.documents import LIMIT_KEYS
from pipeline.corpus.evidence import DOCUMENTS_READ, LINES_READ, MOST_NAMES, Samples
from pipeline.corpus.report import CorpusReport
from pipeline.outputs.rejects import corpus_rows

# Kinds of tallies by their keys in the manifest.
_TALLIES = {"languages": "language", "domains": "domain", "licenses": "license"}
LENGTHS = "document_tokens"


def rules_in_manifest(
    config: CorpusSection, report: CorpusReport, samples: Samples, tallies: Mapping[str, int]
) -> list[dict[str, Any]]:
    """Describe each rule that is on: setting, threshold, paper, dropped text, samples.

    Args:
        config: of `preprocess`.
        report: counts of text that the whole corpus lost, by reason.
        samples: of dropped text, by rule.
        tallies: documents and lines read, by which dropped ones are divided.

    Returns:
        A JSON object for each rule, in the order in which rules are applied.
    """
    rules: list[dict[str, Any]] = [
        {
            "name": rule.name,
            "set_by": rule.set_by,
            "minimum" if rule.maximum is None else "maximum": rule.threshold,
            "paper": rule.paper,
            "of": LINES_READ if rule.of_lines else DOCUMENTS_READ,
        }
        for rule in rules_of(config)
    ]
    for reason, key in LIMIT_KEYS.items():
        least = getattr(config, key)
        if least:
            set_by = f"{key}: {least:g}"
            rules.append({"name": reason, "set_by": set_by, "minimum": least, "of": DOCUMENTS_READ})
    for rule in rules:
        name = rule["name"]
        dropped = report.dropped_lines if rule["of"] == LINES_READ else report.dropped
        rule["dropped"] = dropped[name]
        rule["fraction"] = round(rule["dropped"] / max(tallies.get(rule["of"], 0), 1), 6)
        rule["samples"] = [
            {
                "source": sample.source,
                "line": sample.line,
                "value": sample.value,
                "text": sample.text,
            }
            for sample in samples.get(name, ())
        ]
    return rules


def tallies_in_manifest(tallies: Mapping[str, int]) -> dict[str, Any]:
    """Return the documents read, and those by language, domain and license, where known."""
    names = {
        key: {
            name.removeprefix(f"{kind}/"): number
            for name, number in tallies.items()
            if name.startswith(f"{kind}/")
        }
        for key, kind in _TALLIES.items()
    }
    known = {key: numbers for key, numbers in names.items() if numbers}
    return {"documents_read": tallies.get(DOCUMENTS_READ, 0), **known}


def rule_table(manifest: Mapping[str, Any]) -> TableSection:
    """Return the table of rules with the number of documents or lines that each dropped."""
    return TableSection(
        title="Rules",
        columns=(
            ("rule", "text"), ("keeps", "text"), ("set by", "text"), ("paper", "text"),
            ("dropped", "count"), ("of", "text"), ("of all", "percent"),
        ),
        rows=[
            [
                rule["name"], shown_bound(rule), rule["set_by"], rule.get("paper", ""),
                rule["dropped"], rule["of"], rule["fraction"],
            ]
            for rule in manifest.get("rules", [])
        ],
        note="In this order: text counts under the first rule that drops it.",
    )  # fmt: skip


def evidence_tables(manifest: Mapping[str, Any]) -> Iterator[TableSection]:
    """Yield tables of the whole corpus: text left out, rules, languages, domains, lengths.

    Args:
        manifest: of `preprocess`, with `rules` and `corpus`.

    Yields:
        The tables in order of the page; some may be empty.
    """
    yield from count_tables(manifest)
    yield rule_table(manifest)
    yield from tally_tables(manifest)
    lengths = [
        [f"{least:,} to {2 * least - 1:,} tokens", number]
        for least, number in _documents_by_length(manifest).items()
    ]
    yield _table("Lengths", "document", lengths)


def count_tables(manifest: Mapping[str, Any]) -> Iterator[TableSection]:
    """Tabulate documents, lines and personal data that were read, kept and left out."""
    counts = manifest["counts"]
    rows = [["read", corpus_rows(counts)], ["kept", counts["documents"]]]
    for kind in ("dropped", "rejected"):
        rows += [[f"{kind}: {reason}", number] for reason, number in counts[kind].items()]
    yield _table("Documents", "rows", rows)
    for title, subject, key in (
        ("Lines", "dropped from documents", "dropped_lines"),
        ("Personal data", "replaced", "replaced"),
        ("Evaluation texts", "documents that share text with", "excluded"),
    ):
        entries = counts.get(key, {}).items()
        rows = [[name.rpartition("/")[2], number] for name, number in entries]
        yield _table(title, subject, rows)


def tally_tables(manifest: Mapping[str, Any]) -> Iterator[TableSection]:
    """Tabulate documents by language, domain and license, where these are known."""
    for key in _TALLIES:
        names = [list(item) for item in manifest["corpus"].get(key, {}).items()]
        note = "Before rules."
        if len(names) == MOST_NAMES:
            note = f"The most frequent {MOST_NAMES}, before rules."
        yield _table(key.capitalize(), key.removesuffix("s"), names, note)


def _documents_by_length(manifest: Mapping[str, Any]) -> dict[int, int]:
    """Return documents by tokens: 64 stands for 64 to 127."""
    numbers = manifest["corpus"].get(LENGTHS, {})
    return {int(least): number for least, number in numbers.items()}


def length_histogram(manifest: Mapping[str, Any]) -> HistogramSection | None:
    """Draw the lengths of documents, with empty ranges between them; None if not known."""
    documents = _documents_by_length(manifest)
    if not documents:
        return None
    begins = [1 << power for power in range((max(documents) or 1).bit_length())]
    begins = [begin for begin in begins if begin >= min(documents)]
    return HistogramSection(
        title="Tokens of a document",
        x_title="tokens",
        noun="documents",
        names=[f"{begin:,} to {2 * begin - 1:,}" for begin in begins],
        ticks=[f"{begin:,}" for begin in (*begins, 2 * begins[-1])],
        counts=np.array([documents.get(begin, 0) for begin in begins]),
    )


def _table(title: str, subject: str, rows: list[list[Any]], note: str = "") -> TableSection:
    """Return a table of numbers by the subject that its first column names."""
    columns: Any = ((subject, "text"), ("number", "count"))
    return TableSection(title=title, columns=columns, rows=rows, note=note)


def table_lines(table: TableSection) -> list[str]:
    """Write a table in Markdown; no lines for a table without rows."""
    kinds = [kind for _, kind in table.columns]
    rows = [
        [
            f"{cell:.2%}" if kind == "percent" else cell
            for cell, kind in zip(row, kinds, strict=True)
        ]
        for row in table.rows
    ]
    lines = markdown_table([name for name, _ in table.columns], rows) if rows else []
    return [*lines, "", table.note] if lines and table.note else lines


def shown_bound(rule: Mapping[str, Any]) -> str:
    """Return the values that a rule keeps, such as "at least 0.2"."""
    if "minimum" in rule:
        return f"at least {rule['minimum']:,g}"
    return f"at most {rule['maximum']:,g}"


def sample_sections(manifest: Mapping[str, Any], *, most: int) -> Iterator[ExamplesSection]:
    """Yield a section with text that was dropped for each rule that has samples.

    Args:
        manifest: of `preprocess`, with `rules`.
        most: samples of a rule.

    Yields:
        The sections in order of the rules.
    """
    for rule in manifest["rules"]:
        samples = rule["samples"][:most]
        if samples:
            yield ExamplesSection(
                title=f"Dropped: {rule['name']}",
                examples=[
                    Example(
                        line=sample["line"],
                        facts={"file": sample["source"], "has": f"{sample['value']:.4g}"},
                        texts={rule["of"]: sample["text"]},
                    )
                    for sample in samples
                ],
                note=f"Keeps {shown_bound(rule)}; {rule['set_by']}; {rule['paper']}.",
            )
