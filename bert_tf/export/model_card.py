"""MODEL_CARD.md: what a model is, what it was made from, how good it is, how to load it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bert_tf.config.bert import BertConfig
from bert_tf.export.loading import TrainedModel
from bert_tf.models.pretraining import BertPretrainingModel
from bert_tf.tasks.task_card import TaskCard

_ENCODER = TaskCard(
    title="BERT encoder",
    signature_call='text=tf.constant(["some text"])',
    signature_output="mean_embedding",
    transformers_class="AutoModel",
    google_script="run_pretraining.py",
    script_reads_text=False,
    limits=(
        "The model predicts nothing before it is fine-tuned for a task (`bert-pipeline finetune "
        "--init`); measure what comes out on rows of your own before relying on it."
    ),
)
_PRETRAINED = dataclasses.replace(
    _ENCODER, title="Pretrained BERT encoder", transformers_class="AutoModelForPreTraining"
)


def card_of(trained: TrainedModel) -> TaskCard:
    """What the card of a model says of its task, or of having none."""
    if trained.task is not None:
        return trained.task.card()
    return _PRETRAINED if isinstance(trained.model, BertPretrainingModel) else _ENCODER


def model_card(
    config: BertConfig,
    card: TaskCard,
    *,
    lowercase: bool,
    manifest: dict[str, Any],
    written_format: str,
    notes: list[str],
) -> str:
    """The card as Markdown.

    Args:
        config: shape of the encoder.
        card: of `card_of`.
        lowercase: whether texts are lower-cased.
        manifest: the run's, empty if it has none.
        written_format: what `export` wrote, by the names of its `--format`.
        notes: what that format lacks, or its library computes otherwise.
    """
    sections = [
        f"# {card.title}",
        f"BERT with {config.num_hidden_layers} layers of width {config.hidden_size}, "
        f"{config.num_attention_heads} heads, {config.vocab_size} pieces "
        f"({'lower-cased' if lowercase else 'cased'}).",
        _list_section("Task", card.facts),
        _data_section(manifest),
        _metrics_section(manifest),
        _loading_section(card, written_format, config, lowercase=lowercase),
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
        name = Path(entry["path"]).name
        if name == "best":  # the model of a run
            name = "/".join(Path(entry["path"]).parts[-2:])
        lines.append(f"| {name} | {entry['bytes']:,} | `{entry['sha256'][:16]}…` |")
    return "\n".join(lines)


def _metrics_section(manifest: dict[str, Any]) -> str:
    metrics = manifest.get("metrics", {})
    best = metrics.get("best") or metrics.get("eval") or {}
    rows = [(name, value) for name, value in best.items() if isinstance(value, int | float)]
    if not best.keys() - {"step"}:
        return ""
    lines = [
        "## Metrics",
        "On the evaluation rows of the run:",
        "",
        "| metric | value |",
        "|---|---|",
    ]
    lines += [
        f"| {name} | {value if isinstance(value, int) else format(value, '.4f')} |"
        for name, value in rows
    ]
    return "\n".join(lines)


def _loading_section(
    card: TaskCard, written_format: str, config: BertConfig, *, lowercase: bool
) -> str:
    match written_format:
        case "keras-hub":
            return _keras_hub_loading(card)
        case "google-tf1":
            return _google_loading(card, lowercase=lowercase)
        case "google-tf2":
            return _model_garden_loading(config)
    lines = ["## Loading"]
    if written_format == "savedmodel":
        lines += [
            "Text in, predictions out, with tensorflow and tensorflow_text alone:",
            "```python",
            "import tensorflow as tf",
            "import tensorflow_text",
            'model = tf.saved_model.load("THIS_FOLDER")',
            f'outputs = model.signatures["serving_default"]({card.signature_call})',
            f'print(outputs["{card.signature_output}"].numpy())',
            "```",
        ]
    auto_class = card.transformers_class
    lines += [
        "With transformers:",
        "```python",
        f"from transformers import AutoTokenizer, {auto_class}",
        'tokenizer = AutoTokenizer.from_pretrained("THIS_FOLDER")',
        f'model = {auto_class}.from_pretrained("THIS_FOLDER")',
        "```",
    ]
    return "\n".join(lines)


def _keras_hub_loading(card: TaskCard) -> str:
    return "\n".join(
        [
            "## Loading",
            "With KerasHub:",
            "```python",
            "import keras_hub",
            'tokenizer = keras_hub.models.BertTokenizer.from_preset("THIS_FOLDER")',
            f'model = keras_hub.models.{card.keras_hub_class}.from_preset("THIS_FOLDER")',
            "```",
        ]
    )


def _google_loading(card: TaskCard, *, lowercase: bool) -> str:
    text_flags = f"--vocab_file=THIS_FOLDER/vocab.txt --do_lower_case={lowercase} "
    flags = text_flags if card.script_reads_text else ""
    return "\n".join(
        [
            "## Loading",
            "With google-research/bert (TensorFlow 1):",
            "```",
            f"python {card.google_script} --bert_config_file=THIS_FOLDER/bert_config.json \\",
            f"  --init_checkpoint=THIS_FOLDER/bert_model.ckpt {flags}…",
            "```",
        ]
    )


def _model_garden_loading(config: BertConfig) -> str:
    activation = ['    activation="relu",'] if config.hidden_act == "relu" else []
    return "\n".join(
        [
            "## Loading",
            "With TF Model Garden (TensorFlow 2, package `tf-models-official`):",
            "```python",
            "import tensorflow as tf",
            "import tensorflow_models as tfm",
            "encoder = tfm.nlp.networks.BertEncoder(",
            f"    vocab_size={config.vocab_size},",
            f"    hidden_size={config.hidden_size},",
            f"    num_layers={config.num_hidden_layers},",
            f"    num_attention_heads={config.num_attention_heads},",
            f"    intermediate_size={config.intermediate_size},",
            *activation,
            f"    max_sequence_length={config.max_position_embeddings},",
            f"    type_vocab_size={config.type_vocab_size},",
            "    dict_outputs=True,",
            ")",
            'status = tf.train.Checkpoint(encoder=encoder).read("THIS_FOLDER/bert_model.ckpt-1")',
            "status.expect_partial().assert_existing_objects_matched()",
            "```",
        ]
    )
