"""What the demo shows at the end: curves, measures and predictions to read."""

from __future__ import annotations

import csv
import json
import textwrap
from pathlib import Path
from typing import Any

from pipeline.demo.loss_curve import draw_curve, read_curve

_LINE_WIDTH = 96


def describe_pretraining(run: Path) -> tuple[dict[str, float], list[str]]:
    """Loss curve and held-out measures of a pretraining run."""
    metrics = run / "metrics.jsonl"
    lines = ["pretraining loss (masked-LM + next-sentence), tiny BERT from scratch:"]
    lines += draw_curve(*read_curve(metrics, split="train", key="loss"))
    results: dict[str, float] = {}
    for key in ("loss", "mlm_loss", "mlm_accuracy", "nsp_accuracy"):
        steps, values = read_curve(metrics, split="eval", key=key)
        if values:
            results[f"first_{key}"], results[key] = values[0], values[-1]
            lines.append(
                f"  held-out documents: {key} {values[0]:.3f} at step {steps[0]}, "
                f"{values[-1]:.3f} at step {steps[-1]}"
            )
    return results, lines


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
    """Measures on held-out questions and the answers found."""
    lines = [
        f"cities, held-out questions: exact match {metrics['exact_match']:.1f}, "
        f"F1 {metrics['f1']:.1f} (of 100)",
        "new questions, as answered:",
    ]
    for line in scored.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        lines.append(f"  {row['question']:<52}{row['predicted_answer']}")
    return lines


def _shortened(text: str, width: int) -> str:
    return textwrap.shorten(text, width, placeholder=" …")
