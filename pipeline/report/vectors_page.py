"""The page of vectors: cosines of texts, and the nearest ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.base.wording import quantity
from bert_tf.tasks.base.histograms import histogram
from bert_tf.tasks.base.report_sections import Section, TableSection
from pipeline.report.document import tiles_html

# Vectors that are compared with each other: their square in similarities takes 16 MB.
_MOST_COMPARED = 2_000
_MOST_PAIRS = 10
_LEAST_TEXTS = 8  # that are shown with their nearest
_SMALLEST_NORM = 1e-12  # to divide by
_EQUAL_NORMS = 1e-3  # of the largest norm: norms that differ by less are equal
_NEARLY_EQUAL = 0.95  # cosine
_SETTINGS = ("pooling", "normalize", "max_seq_length", "prompt")


def vectors_sections(
    path: Path, manifest: Mapping[str, Any], *, samples: int
) -> list[Section | str]:
    """Lay out the output of `embed`; raise UsageError and InputError as `read_vectors`."""
    from pipeline.embedding.vectors import holds_vectors, read_vectors

    if not holds_vectors(str(path)):
        return [tiles_html(_tiles(manifest, None))]
    stored = read_vectors(str(path), text_column=None)
    number = len(stored.vectors)
    rows = np.unique(np.linspace(0, number - 1, min(number, _MOST_COMPARED)).astype(np.int64))
    vectors = stored.vectors[rows].astype(np.float64)
    texts = [f"row {row + 1:,}" for row in rows.tolist()]
    if stored.texts is not None:
        texts = [stored.texts[row].as_py() or "" for row in rows.tolist()]
    norms = np.linalg.norm(vectors, axis=1)
    unit = vectors / np.maximum(norms, _SMALLEST_NORM)[:, None]
    content: list[Section | str] = [tiles_html(_tiles(manifest, stored.vectors.shape))]
    if len(rows) < 2:
        return content
    cosines = unit @ unit.T
    above = cosines[np.triu_indices(len(rows), 1)]
    np.fill_diagonal(cosines, -np.inf)
    note = f"Of {len(rows):,} of {number:,} vectors, evenly spread. " if len(rows) < number else ""
    content.append(
        histogram(
            "Cosines of all pairs",
            "cosine",
            "pairs",
            above,
            note=f"{note}Their mean is {above.mean():.3f}; where all pairs are above 0.8, only the "
            "order of cosines says something.",
        )
    )
    content.append(histogram("Cosine with the nearest", "cosine", "texts", cosines.max(axis=1)))
    if np.ptp(norms) > _EQUAL_NORMS * norms.max():
        content.append(histogram("Norms", "Euclidean norm", "vectors", norms))
    content.append(_nearest(cosines, texts, max(samples, _LEAST_TEXTS)))
    content.append(_most_alike(cosines, texts, note))
    return content


def _tiles(manifest: Mapping[str, Any], shape: tuple[int, ...] | None) -> dict[str, str]:
    counts = manifest.get("counts", {})
    settings = manifest.get("embedding") or {}
    tiles = {}
    if shape is not None:
        tiles = {"vectors": f"{shape[0]:,}", "dimensions": f"{shape[1]:,}"}
    for key in _SETTINGS:
        if settings.get(key) not in (None, ""):
            tiles[key.replace("_", " ")] = str(settings[key]).lower()
    for key in ("rows_truncated", "rows_rejected"):
        if counts.get(key):
            tiles[key.replace("_", " ")] = f"{counts[key]:,}"
    return tiles


def _nearest(cosines: np.ndarray, texts: list[str], most: int) -> TableSection:
    """Show evenly spread texts with their nearest; `cosines` has -inf on its diagonal."""
    chosen = np.unique(np.linspace(0, len(texts) - 1, min(most, len(texts))).astype(np.int64))
    nearest = cosines[chosen].argmax(axis=1)
    return TableSection(
        title="Nearest texts",
        columns=(("cosine", "number"), ("text", "text"), ("nearest", "text")),
        rows=[
            [float(cosines[row, other]), texts[row], texts[other]]
            for row, other in zip(chosen.tolist(), nearest.tolist(), strict=True)
        ],
        note="Do the texts of a row belong together? If not, these vectors are of little use.",
    )


def _most_alike(cosines: np.ndarray, texts: list[str], note: str) -> TableSection:
    """Show the pairs of different texts with the highest cosines, and count equal texts."""
    _, numbers = np.unique(np.array(texts), return_inverse=True)
    firsts = np.unique(numbers, return_index=True)[1]
    distinct = np.sort(firsts)
    upper = np.triu(cosines[np.ix_(distinct, distinct)], 1)
    upper[np.tril_indices(len(distinct))] = -np.inf
    order = np.argsort(-upper, axis=None, kind="stable")[:_MOST_PAIRS]
    near = int((cosines.max(axis=1) >= _NEARLY_EQUAL).sum())
    rows = []
    for place in order.tolist():
        row, other = divmod(place, len(distinct))
        if np.isfinite(upper[row, other]):
            cosine = float(upper[row, other])
            rows.append([cosine, texts[distinct[row]], texts[distinct[other]]])
    return TableSection(
        title="Most alike",
        columns=(("cosine", "number"), ("one", "text"), ("another", "text")),
        rows=rows,
        note=f"{note}{quantity(near, 'text')} of {len(texts):,} have another with a cosine of "
        f"{_NEARLY_EQUAL} or more; {quantity(len(texts) - len(distinct), 'text')} repeat another "
        "one and are left out here.",
    )
