"""The report at the end of the demo: curves, measures and predictions to read."""

from __future__ import annotations

import csv
import json
import textwrap
from pathlib import Path
from typing import Any

from bert_tf.training.run.metrics_file import read_metrics
from pipeline.report.artifact import loss_curve_lines

_LINE_WIDTH = 96


def describe_pretraining(run: Path) -> tuple[dict[str, float], list[str]]:
    """Loss curve and held-out measures of a pretraining run."""
    metrics = run / "metrics.jsonl"
    lines = [
        "a tiny BERT pretrained from scratch, masked-LM + next-sentence",
        *loss_curve_lines(metrics),
    ]
    evaluations = [line for line in read_metrics(metrics) if line["split"] == "eval"]
    first, last = evaluations[0], evaluations[-1]
    measures: dict[str, float] = {}
    for key in ("loss", "mlm_loss", "mlm_accuracy", "nsp_accuracy"):
        measures[f"first_{key}"], measures[key] = first[key], last[key]
        lines.append(
            f"  held-out documents: {key} {first[key]:.3f} at step {first['step']}, "
            f"{last[key]:.3f} at step {last['step']}"
        )
    return measures, lines


def describe_classification(metrics: dict[str, Any], scored: Path) -> list[str]:
    """Measures on held-out rows and the scored messages."""
    lines = [
        f"complaints, held-out rows: accuracy {metrics['accuracy']:.3f}, "
        f"macro F1 {metrics['macro_f1']:.3f}",
        "new complaints, as scored:",
    ]
    with scored.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            lead = f"  {row['predicted_label']:<9}{float(row['predicted_score']):5.2f}  "
            lines.append(lead + _shortened(row["text"], _LINE_WIDTH - len(lead)))
    return lines


def describe_answers(metrics: dict[str, Any], scored: Path) -> list[str]:
    """Measures on held-out questions, and the answers found with their probabilities."""
    lines = [
        f"cities, held-out questions: exact match {metrics['exact_match']:.1f}, "
        f"F1 {metrics['f1']:.1f} (of 100)",
        "new questions, as answered:",
    ]
    rows = [json.loads(line) for line in scored.read_text(encoding="utf-8").splitlines()]
    return lines + align(
        [
            (row["question"], f"{row['predicted_score']:.2f}  {row['predicted_answer']}")
            for row in rows
        ]
    )


def align(rows: list[tuple[str, str]]) -> list[str]:
    """Two indented columns, the first as wide as its longest text."""
    width = max((len(first) for first, _ in rows), default=0)
    return [f"  {first:<{width}}  {second}" for first, second in rows]


def _shortened(text: str, width: int) -> str:
    return textwrap.shorten(text, width, placeholder=" …")
