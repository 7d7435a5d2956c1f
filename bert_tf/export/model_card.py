"""The text of a model card: what a model is, from what, how good it is, how to load it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bert_tf.base.wording import quantity
from bert_tf.config.bert import BertConfig
from bert_tf.config.embedding_recipe import RAW_CLS, EmbeddingRecipe
from bert_tf.data.text.casing import KEEP_ACCENTS, Lowercase
from bert_tf.embeddings.settings import EMBEDDING
from bert_tf.export.formats.model_format import ModelFormat
from bert_tf.export.int8 import Int8Comparison
from bert_tf.export.loading import TrainedModel
from bert_tf.models.masked_lm import BertMaskedLM
from bert_tf.models.pretraining import BertPretrainingModel
from bert_tf.tasks.base.task_card import PRETRAINING_METRIC_TYPES, TaskCard
from bert_tf.training.run.best_model import BestModel

_ENCODER = TaskCard(
    title="BERT encoder",
    example={"text": "some text"},
    signature_output="mean_embedding",
    transformers_class="AutoModel",
    pipeline_tag="feature-extraction",
    google_script="run_pretraining.py",
    script_reads_text=False,
    limits=(
        "The model predicts nothing before it is fine-tuned for a task (`bert-pipeline finetune "
        "--init`); measure what comes out on rows of your own before relying on it. " + RAW_CLS
    ),
)
_PRETRAINED = dataclasses.replace(
    _ENCODER,
    title="Pretrained BERT encoder",
    transformers_class="AutoModelForPreTraining",
    metric_types=PRETRAINING_METRIC_TYPES,
)
_CARDS = {
    BertPretrainingModel: _PRETRAINED,
    BertMaskedLM: dataclasses.replace(_PRETRAINED, transformers_class="AutoModelForMaskedLM"),
}


def card_of(trained: TrainedModel) -> TaskCard:
    """The part of the card about the task of a model, or about having none."""
    if trained.task is not None:
        return trained.task.card()
    recipe = trained.recipe
    if recipe is not None:
        return dataclasses.replace(
            _ENCODER,
            title="Sentence embedding model",
            facts=(f"vectors of texts: {recipe}", *_prompt_facts(recipe)),
            signature_output=EMBEDDING,
            pipeline_tag="sentence-similarity",
            limits=(
                "Near vectors mean similar texts only for texts such as the model was trained on; "
                "measure that on rows of your own before relying on it."
            ),
        )
    return _CARDS.get(type(trained.model), _ENCODER)


def _prompt_facts(recipe: EmbeddingRecipe) -> list[str]:
    """A line for each prompt that changes a text."""
    return [
        f"the prompt {name!r} is put before a text: `{prompt}`"
        + (" (the default)" if name == recipe.default_prompt else "")
        for name, prompt in recipe.prompts.items()
        if prompt
    ]


def model_card(
    config: BertConfig,
    card: TaskCard,
    *,
    lowercase: Lowercase,
    manifest: dict[str, Any],
    written: ModelFormat,
    notes: list[str],
    comparison: Int8Comparison | None = None,
) -> str:
    """The card as Markdown.

    Args:
        config: shape of the encoder.
        card: of `card_of`.
        lowercase: whether texts are lower-cased.
        manifest: the run's, empty if it has none.
        written: the format that was exported.
        notes: what that format lacks, or its library computes otherwise.
        comparison: of the int8 graph with the float32 one, if the former is there.
    """
    letters = "lower-cased" if lowercase else "cased"
    if lowercase == KEEP_ACCENTS:
        letters += ", with accents"
    loading = written.loading(card, config, lowercase=bool(lowercase))
    sections = [
        f"# {card.title}",
        f"BERT with {config.num_hidden_layers} layers of width {config.hidden_size}, "
        f"{config.num_attention_heads} heads, {config.vocab_size} vocabulary entries "
        f"({letters}).",
        _list_section("Task", card.facts),
        _data_section(manifest),
        _metrics_section(manifest),
        "" if comparison is None else _int8_section(comparison),
        "\n".join(["## Loading", *loading]),
        _list_section("What differs", notes),
        f"## Limits\n{card.limits}",
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _list_section(title: str, items: Sequence[str]) -> str:
    return "\n".join([f"## {title}", *(f"- {item}" for item in items)]) if items else ""


def _data_section(manifest: dict[str, Any]) -> str:
    inputs = manifest.get("inputs", [])
    if not inputs:
        return ""
    lines = ["## Data", "| made from | bytes | SHA-256 |", "|---|---|---|"]
    for entry in inputs:
        sha256 = entry["sha256"][:16]
        lines.append(f"| {_input_name(entry)} | {entry['bytes']:,} | `{sha256}…` |")
    return "\n".join([*lines, *_teachers(inputs), *_cut_rows(manifest.get("counts", {}))])


def _input_name(entry: dict[str, Any]) -> str:
    path = Path(entry["path"])
    return "/".join(path.parts[-2:]) if path.name == "best" else path.name  # the model of a run


def _teachers(inputs: list[dict[str, Any]]) -> list[str]:
    """A sentence on the model whose predictions were learned."""
    return [
        line
        for entry in inputs
        if entry.get("key") == "teacher"
        for line in (
            "",
            f"Distilled: besides the labels, it learned the predictions of `{_input_name(entry)}`.",
        )
    ]


def _int8_section(comparison: Int8Comparison) -> str:
    return "\n".join(
        (
            "## 8-bit integers",
            "Beside the float32 graph is one whose matrix products are of 8-bit integers (static "
            f"quantization), calibrated with {comparison.calibration_rows:,} of the "
            f"{comparison.rows:,} rows of {comparison.source}. On all of these:",
            "",
            f"| graph | {comparison.metric} |",
            "|---|---|",
            f"| float32 | {comparison.float32:.4f} |",
            f"| int8 | {comparison.int8:.4f} |",
        )
    )


def _cut_rows(counts: dict[str, Any]) -> list[str]:
    """Sentences on the rows that were too long."""
    named = (("train", "training"), ("eval", "evaluation"))
    found = [(name, counts[key]) for key, name in named if counts.get(key, {}).get("rows_cut")]
    lines = [
        f"{each['rows_cut']:,} of {each['rows_out']:,} {name} rows were too long and lost "
        f"{quantity(each['tokens_lost'], 'token')}."
        for name, each in found
    ]
    return ["", *lines] if lines else []


def _metrics_section(manifest: dict[str, Any]) -> str:
    metrics = manifest.get("metrics", {})
    best = metrics.get("best") or metrics.get("eval") or {}
    rows = [(name, value) for name, value in best.items() if isinstance(value, int | float)]
    if not best.keys() - {"step"}:
        return ""
    model = BestModel.of_manifest(manifest)
    lines = [
        "## Metrics",
        *([f"This is {model}.", ""] if model else []),
        "On the evaluation rows of the run:",
        "",
        "| metric | value |",
        "|---|---|",
    ]
    lines += [
        f"| {name} | {value if isinstance(value, int) else format(value, '.4f')} |"
        for name, value in rows
    ]
    return "\n".join([*lines, *_seeds(metrics, manifest)])


def _seeds(metrics: dict[str, Any], manifest: dict[str, Any]) -> list[str]:
    """How much the results of a series of runs depend on the seed, of which the best was chosen."""
    deviation = {
        name: value for name, value in metrics.get("deviation", {}).items() if value is not None
    }
    if not deviation:
        return []
    shown = ", ".join(
        f"{name} {metrics['mean'][name]:.4f} ± {value:.4f}" for name, value in deviation.items()
    )
    seeds = manifest["config"]["seeds"]
    return ["", f"Mean over {seeds} seeds, ± standard deviation: {shown}."]
