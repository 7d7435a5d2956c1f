"""Cards of models and data sets for the Hugging Face Hub: front matter and Markdown tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

_FRONT_MATTER = re.compile(r"---\r?\n(.*?)\r?\n---(\r?\n|$)", re.DOTALL)


def front_matter(metadata: Mapping[str, Any], keys: Sequence[str]) -> str:
    """Format metadata as the head of a card.

    Args:
        metadata: values by key; empty ones are left out.
        keys: keys in the order of the result.
    """
    ordered = {key: metadata[key] for key in keys if metadata.get(key)}
    text = yaml.safe_dump(ordered, sort_keys=False, allow_unicode=True, width=100)
    return f"---\n{text}---\n\n"


def read_front_matter(card: Path) -> dict[str, Any]:
    """Read the metadata of a card; return {} without a card, or if the Hub could not read it."""
    if not card.is_file():
        return {}
    match = _FRONT_MATTER.match(card.read_bytes().decode("utf-8-sig", errors="replace"))
    try:
        metadata = yaml.safe_load(match[1]) if match else None
    except (yaml.YAMLError, RecursionError, ValueError):  # such as the date 2026-99-99
        return {}
    return metadata if isinstance(metadata, dict) else {}


def size_category(number: int) -> str:
    """Return the Hub's range of a number of rows: `n<1K`, `10K<n<100K`, `n>1T`."""
    # https://github.com/huggingface/hub-docs/blob/main/datasetcard.md
    bounds = ["1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B", "100B", "1T"]
    place = sum(number >= 1000 * 10**i for i in range(len(bounds)))
    if place == 0:
        return f"n<{bounds[0]}"
    return f"{bounds[place - 1]}<n<{bounds[place]}" if place < len(bounds) else f"n>{bounds[-1]}"


def card_section(title: str, lines: Iterable[str]) -> str:
    """Format a section; "" without lines."""
    lines = list(lines)
    return "\n".join([f"## {title}", *lines]) if lines else ""


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """Format the lines of a table; numbers get commas, and no cell can end its row."""
    head, *body = (f"| {' | '.join(map(_cell, line))} |" for line in (columns, *rows))
    return [head, f"|{'---|' * len(columns)}", *body]


def _cell(value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return as_text(" ".join(str(value).split()).replace("|", "\\|"))


def as_text(value: str) -> str:
    """Escape characters that Markdown would take for HTML."""
    return value.replace("<", "&lt;")
