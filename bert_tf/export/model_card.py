"""Model cards: the text, and the metadata that the Hugging Face Hub reads at its head."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bert_tf.base.cards import as_text, card_section, markdown_table, read_front_matter
from bert_tf.base.checksums import CARD
from bert_tf.base.wording import quantity
from bert_tf.config.bert import BertConfig
from bert_tf.config.embedding_recipe import RAW_CLS, EmbeddingRecipe
from bert_tf.data.tables.dialect import table_format_by_name
from bert_tf.data.text.casing import KEEP_ACCENTS, Lowercase
from bert_tf.embeddings.settings import EMBEDDING
from bert_tf.export.int8 import Int8Comparison
from bert_tf.export.loading import ModelFormat, TrainedModel
from bert_tf.export.registry import FormatEntry
from bert_tf.models.heads import BertMaskedLM, BertPretrainingModel
from bert_tf.tasks.base.declaration import PRETRAINING_METRIC_TYPES, TaskCard
from bert_tf.training.best_model import BestModel

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
        "--init`); evaluate the results on your own rows before relying on them. " + RAW_CLS
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
# Keys of a card that stay true if the same weights are written in another format.
_KEPT_KEYS = ("language", "license", "license_name", "license_link", "base_model", "datasets")
# Keys of a card's metadata, in the order in which they are written.
HUB_KEYS = (
    "language",
    "license",
    "license_name",
    "license_link",
    "library_name",
    "pipeline_tag",
    "base_model",
    "tags",
    "datasets",
    "model-index",
)
_TAGS = ("bert", "bert-pipeline")
# Names by which the `datasets` library loads files of each format.
_LOADERS = {"csv": "csv", "tsv": "csv", "jsonl": "json", "parquet": "parquet"}
_NOT_MEASURES = ("step", "loss")  # numbers of an evaluation that are no results
_DIGITS = 6  # decimals of results
# Folder of the Hub's downloads: https://hf.co/docs/huggingface_hub/guides/manage-cache
_CACHE_FOLDER = re.compile(r"models--(?:(.+?)--)?(.+)")


def card_of(trained: TrainedModel) -> TaskCard:
    """Return the card of a model's task, or that of a model without one."""
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
                "Nearby vectors only mean similar texts for texts like those in training; evaluate "
                "this on your own rows before relying on it."
            ),
        )
    return _CARDS.get(type(trained.model), _ENCODER)


def _prompt_facts(recipe: EmbeddingRecipe) -> list[str]:
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
    """Return the card as Markdown.

    Args:
        config: sizes of the model.
        card: facts about the task.
        lowercase: whether texts are lower-cased before tokenization, and how.
        manifest: manifest of the run; {} without one.
        written: format that the model was written in.
        notes: differences between the format and the model.
        comparison: results of the int8 graph; None if there is none.
    """
    letters = "lower-cased" if lowercase else "cased"
    if lowercase == KEEP_ACCENTS:
        letters += ", with accents"
    loading = written.loading(card, lowercase=bool(lowercase))
    sections = [
        f"# {card.title}",
        f"BERT with {config.num_hidden_layers} layers of width {config.hidden_size}, "
        f"{config.num_attention_heads} heads, {config.vocab_size} vocabulary entries "
        f"({letters}).",
        card_section("Task", (f"- {as_text(fact)}" for fact in card.facts)),
        _data_section(manifest),
        _metrics_section(manifest),
        "" if comparison is None else _int8_section(comparison),
        "\n".join(["## Loading", *loading]),
        card_section("What differs", (f"- {note}" for note in notes)),
        f"## Limits\n{card.limits}",
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _data_section(manifest: dict[str, Any]) -> str:
    inputs = manifest.get("inputs", [])
    if not inputs:
        return ""
    rows = ((_input_name(entry), entry["bytes"], f"`{entry['sha256'][:16]}…`") for entry in inputs)
    lines = ["## Data", *markdown_table(("made from", "bytes", "SHA-256"), rows)]
    for entry in inputs:
        if entry.get("key") == "teacher":
            teacher = _input_name(entry)
            lines += [
                "",
                f"Distilled: besides the labels, it learned the predictions of `{teacher}`.",
            ]
    return "\n".join([*lines, *_cut_rows(manifest.get("counts", {}))])


def _input_name(entry: dict[str, Any]) -> str:
    path = Path(entry["path"])
    return "/".join(path.parts[-2:]) if path.name == "best" else path.name  # the model of a run


def _int8_section(comparison: Int8Comparison) -> str:
    return (
        "## 8-bit integers\n"
        "Beside the float32 graph is one whose matrix products are of 8-bit integers (static "
        f"quantization), calibrated with {comparison.calibration_rows:,} of the "
        f"{comparison.rows:,} rows of {comparison.source}. On all of these:\n\n"
        f"| graph | {comparison.metric} |\n|---|---|\n"
        f"| float32 | {comparison.float32:.4f} |\n| int8 | {comparison.int8:.4f} |"
    )


def _cut_rows(counts: dict[str, Any]) -> list[str]:
    lines = []
    for key, name in (("train", "training"), ("eval", "evaluation")):
        of_split = counts.get(key, {})
        if of_split.get("rows_cut"):
            lines.append(
                f"{of_split['rows_cut']:,} of {of_split['rows_out']:,} {name} rows were too long "
                f"and lost {quantity(of_split['tokens_lost'], 'token')}."
            )
    return ["", *lines] if lines else []


def _metrics_section(manifest: dict[str, Any]) -> str:
    metrics = manifest.get("metrics", {})
    best = metrics.get("best") or metrics.get("eval") or {}
    if not best.keys() - {"step"}:
        return ""
    model = BestModel.of_manifest(manifest)
    lines = ["## Metrics", *([f"This is {model}.", ""] if model else [])]
    rows = [
        (name, str(value) if isinstance(value, int) else f"{value:.4f}")
        for name, value in best.items()
        if isinstance(value, int | float)
    ]
    lines += ["On the evaluation rows of the run:", "", *markdown_table(("metric", "value"), rows)]
    deviations = [  # how much the results of a series of runs depend on the seed
        f"{name} {metrics['mean'][name]:.4f} ± {value:.4f}"
        for name, value in metrics.get("deviation", {}).items()
        if value is not None
    ]
    if deviations:
        seeds = manifest["config"]["seeds"]
        lines += ["", f"Mean over {seeds} seeds, ± standard deviation: {', '.join(deviations)}."]
    return "\n".join(lines)


def hub_metadata(
    card: TaskCard,
    entry: FormatEntry,
    *,
    name: str,
    manifest: Mapping[str, Any],
    source: Path,
    user_keys: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the metadata of a card, by the keys of
    https://github.com/huggingface/hub-docs/blob/main/modelcard.md.

    The model of a run has no card yet. A folder written in another format keeps license and
    languages of its card.

    Args:
        card: facts about the task.
        entry: format that the model was written in.
        name: name of the model, for its results.
        manifest: manifest of the run; empty without one.
        source: folder that the weights were read from.
        user_keys: `license`, `language` and `base_model`; None if the user gave none.
    """
    before = read_front_matter(source / CARD)
    known = {key: before[key] for key in _KEPT_KEYS if key in before}
    keeps_head = entry.keeps_head(card)
    encoder_tag = entry.encoder_pipeline_tag
    metadata = {
        **known,
        "library_name": entry.library_name,
        "pipeline_tag": card.pipeline_tag if keeps_head else encoder_tag,
        "base_model": known.get("base_model") or _base_model(manifest, source),
        "tags": [*_TAGS, *entry.tags],
        **{key: value for key, value in user_keys.items() if value is not None},
    }
    if keeps_head:
        metadata["model-index"] = _model_index(card, name=name, manifest=manifest)
    return metadata


def _base_model(manifest: Mapping[str, Any], source: Path) -> str | None:
    """Return the Hub's id of the weights that a run started from, or that are exported."""
    inputs = manifest.get("inputs", [])
    starts = [entry["path"] for entry in inputs if entry.get("key") in ("init", "source")]
    for path in starts or [source]:
        for part in Path(path).parts:
            match = _CACHE_FOLDER.fullmatch(part)
            if match is not None:
                return "/".join(filter(None, match.groups()))
    return None


def _model_index(
    card: TaskCard, *, name: str, manifest: Mapping[str, Any]
) -> list[dict[str, Any]] | None:
    metrics = manifest.get("metrics", {})
    best = metrics.get("best") or metrics.get("eval") or {}
    measured = [
        {
            "type": card.metric_types.get(metric, metric),
            "value": round(value, _DIGITS),
            "name": metric,
        }
        for metric, value in best.items()
        if metric not in _NOT_MEASURES and isinstance(value, int | float) and math.isfinite(value)
    ]
    dataset = next(_evaluation_data(manifest), None)
    if not measured or dataset is None:
        return None
    task = {"type": card.pipeline_tag, "name": card.title}
    return [{"name": name, "results": [{"task": task, "dataset": dataset, "metrics": measured}]}]


def _evaluation_data(manifest: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Yield files that may hold the evaluation rows of a run, the most likely first."""
    for key in ("eval", "train", "data"):
        for entry in manifest.get("inputs", []):
            if entry.get("key", "").partition("[")[0] == key:
                name = Path(entry["path"]).name
                yield {
                    "type": _LOADERS.get(table_format_by_name(name) or "", "text"),
                    "name": name if key == "eval" else f"{name} (held out)",
                    "split": "validation",
                }
