"""A run at a glance: its best metric, compared with its baseline, and its cost."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from bert_tf.base.wording import quantity, shown_duration, shown_measure, shown_number
from bert_tf.pretraining.findings import UNIGRAM_ENTROPY
from bert_tf.training.best_model import BestModel
from pipeline.report.document import sentence_case, tiles_html

_MLM_LOSS = "mlm_loss"


def run_headline(manifest: Mapping[str, Any]) -> str:
    """Render the verdict on a finished run, and its tiles: best metric, steps, time, rows."""
    sentence = verdict(manifest)
    paragraph = f'<p class="verdict">{escape(sentence)}</p>' if sentence else ""
    best = BestModel.of_manifest(dict(manifest))
    chosen = None if best is None else best.metric
    return f"{paragraph}{tiles_html(_tiles(manifest, best), chosen=chosen)}"


def verdict(manifest: Mapping[str, Any]) -> str | None:
    """Compare the best model with one that ignores its input, in a sentence.

    Returns:
        The sentence; None if there is no comparison, or if the model is no better and the run has
        notes, which say so already.
    """
    compared = manifest.get("baseline")
    is_noted = bool(manifest.get("notes"))
    if isinstance(compared, Mapping):
        if is_noted and not compared["is_better"]:
            return None
        best = manifest.get("best_model") or {}
        value = shown_measure(compared["value"], compared.get("error"), best.get("rows"))
        relation = "better" if compared["is_better"] else "no better"
        return (
            f"{sentence_case(compared['metric'])} {value}: {relation} than "
            f"{compared['prediction']} ({compared['baseline']:.3g})."
        )
    evaluated = manifest.get("metrics", {}).get("eval") or {}
    loss = evaluated.get(_MLM_LOSS)
    entropy = evaluated.get(UNIGRAM_ENTROPY)
    if loss is None or entropy is None or (is_noted and loss >= entropy):
        return None
    if loss < entropy:
        return (
            f"Held-out masked-LM loss {loss:.2f}, {entropy - loss:.2f} below the unigram baseline "
            f"({entropy:.2f}): the model predicts from context."
        )
    return (
        f"Held-out masked-LM loss {loss:.2f}, no better than the unigram baseline "
        f"({entropy:.2f}): the model does not predict from context yet."
    )


def _tiles(manifest: Mapping[str, Any], best: BestModel | None) -> dict[str, str]:
    """Return the main figures of a run by name."""
    counts = manifest.get("counts", {})
    metrics = manifest.get("metrics", {})
    tiles = {}
    if best is not None and best.metric is not None and best.value is not None:
        tiles[best.metric] = shown_measure(best.value, best.error)
    if best is not None:
        steps = counts.get("steps", best.step)
        tiles["best model"] = f"step {best.step:,} of {steps:,}"
    of_best = metrics.get("best") or {}
    for name, value in of_best.items():
        if name not in tiles and name not in ("step", "phase", "epoch"):
            tiles[name] = shown_number(value)
    last = metrics.get("train") or {}
    if "time" in last:
        tiles["time of training"] = shown_duration(last["time"])
    if "examples_per_second" in last:
        tiles["examples/s at the end"] = f"{last['examples_per_second']:,.0f}"
    for split in ("train", "eval"):
        rows = counts.get(split)
        if isinstance(rows, Mapping) and "rows_out" in rows:
            tiles[f"{split} rows"] = f"{rows['rows_out']:,}"
    if "examples" in counts and not isinstance(counts["examples"], Mapping):
        tiles["examples"] = f"{counts['examples']:,}"
    if counts.get("rows_rejected"):
        tiles["rejected"] = quantity(counts["rows_rejected"], "row")
    if manifest.get("stopped_early"):
        tiles["stopped early"] = str(manifest["stopped_early"])
    return tiles
