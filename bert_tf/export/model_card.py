"""MODEL_CARD.md: what a model is, what it was made from, how good it is, how to load it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bert_tf.config.bert import BertConfig

_TITLES = {
    "classification": "Text classifier",
    "qa": "Question answering model",
    None: "Pretrained BERT encoder",
}
_SAVED_MODEL_CALL = {
    "classification": ('text=tf.constant(["some text"])', 'outputs["predicted_label"]'),
    "qa": (
        'question=tf.constant(["Who?"]), context=tf.constant(["Ada wrote it."])',
        'outputs["predicted_answer"]',
    ),
    None: ('text=tf.constant(["some text"])', 'outputs["mean_embedding"]'),
}
_TRANSFORMERS_CLASS = {
    "classification": "AutoModelForSequenceClassification",
    "qa": "AutoModelForQuestionAnswering",
    None: "AutoModelForPreTraining",
}
_GOOGLE_SCRIPT = {
    "classification": "run_classifier.py",
    "qa": "run_squad.py",
    None: "run_pretraining.py",
}


def model_card(
    config: BertConfig,
    task: dict[str, Any] | None,
    *,
    lowercase: bool,
    manifest: dict[str, Any],
    written_format: str,
    notes: list[str],
) -> str:
    """The card as Markdown.

    Args:
        config: shape of the encoder.
        task: content of `task.json`, None for a model that was pretrained only.
        lowercase: whether texts are lower-cased.
        manifest: the run's, empty if it has none.
        written_format: what `export` wrote, by the names of its `--format`.
        notes: what that format lacks, or its library computes otherwise.
    """
    name = task["task"] if task else None
    sections = [
        f"# {_TITLES[name]}",
        f"BERT with {config.num_hidden_layers} layers of width {config.hidden_size}, "
        f"{config.num_attention_heads} heads, {config.vocab_size} pieces "
        f"({'lower-cased' if lowercase else 'cased'}).",
        _task_section(task),
        _data_section(manifest),
        _metrics_section(manifest),
        _loading_section(name, task, written_format, config, lowercase=lowercase),
        "\n".join(["## What differs", *(f"- {note}" for note in notes)]) if notes else "",
        "## Limits\nThe model is as good as its data: measure it on rows of your own with "
        "`bert-pipeline evaluate` before relying on it.",
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _task_section(task: dict[str, Any] | None) -> str:
    if task is None:
        return ""
    lines = ["## Task"]
    if task["task"] == "classification":
        shown = ", ".join(f"`{label}`" for label in task["labels"][:20])
        more = len(task["labels"]) - 20
        lines += [
            f"- texts are cut at {task['max_seq_length']} pieces",
            f"- labels: {shown}" + (f" and {more} more" if more > 0 else ""),
        ]
    else:
        may = "may remain" if task["may_be_unanswerable"] else "never remains"
        lines += [
            f"- contexts of any length, read in windows of {task['max_seq_length']} pieces with a "
            f"stride of {task['doc_stride']}; answers up to {task['max_answer_length']} pieces",
            f"- a question {may} without an answer",
        ]
    return "\n".join(lines)


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
    name: str | None,
    task: dict[str, Any] | None,
    written_format: str,
    config: BertConfig,
    *,
    lowercase: bool,
) -> str:
    match written_format:
        case "keras-hub":
            return _keras_hub_loading(name)
        case "google-tf1":
            return _google_loading(name, lowercase=lowercase)
        case "google-tf2":
            return _model_garden_loading(config)
    lines = ["## Loading"]
    if written_format == "savedmodel":
        inputs, result = _SAVED_MODEL_CALL[name]
        if task and name == "classification" and task["columns"]["text_pair"] is not None:
            inputs += ', text_pair=tf.constant(["another text"])'
        lines += [
            "Text in, predictions out, with tensorflow and tensorflow_text alone:",
            "```python",
            "import tensorflow as tf",
            "import tensorflow_text",
            'model = tf.saved_model.load("THIS_FOLDER")',
            f'outputs = model.signatures["serving_default"]({inputs})',
            f"print({result}.numpy())",
            "```",
        ]
    auto_class = _TRANSFORMERS_CLASS[name]
    lines += [
        "With transformers:",
        "```python",
        f"from transformers import AutoTokenizer, {auto_class}",
        'tokenizer = AutoTokenizer.from_pretrained("THIS_FOLDER")',
        f'model = {auto_class}.from_pretrained("THIS_FOLDER")',
        "```",
    ]
    return "\n".join(lines)


def _keras_hub_loading(name: str | None) -> str:
    model = "BertTextClassifier" if name == "classification" else "BertBackbone"
    return "\n".join(
        [
            "## Loading",
            "With KerasHub:",
            "```python",
            "import keras_hub",
            'tokenizer = keras_hub.models.BertTokenizer.from_preset("THIS_FOLDER")',
            f'model = keras_hub.models.{model}.from_preset("THIS_FOLDER")',
            "```",
        ]
    )


def _google_loading(name: str | None, *, lowercase: bool) -> str:
    text_flags = f"--vocab_file=THIS_FOLDER/vocab.txt --do_lower_case={lowercase} " if name else ""
    return "\n".join(
        [
            "## Loading",
            "With google-research/bert (TensorFlow 1):",
            "```",
            f"python {_GOOGLE_SCRIPT[name]} --bert_config_file=THIS_FOLDER/bert_config.json \\",
            f"  --init_checkpoint=THIS_FOLDER/bert_model.ckpt {text_flags}…",
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
