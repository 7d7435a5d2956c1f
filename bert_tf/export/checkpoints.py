"""Checkpoints and presets of other BERT code: google-research/bert, KerasHub."""

from __future__ import annotations

from pathlib import Path

from bert_tf.base.console import Console
from bert_tf.config.bert import BertConfig
from bert_tf.export.loading import TrainedModel, model_contents
from bert_tf.tasks.base.declaration import TaskCard
from bert_tf.weights.google_checkpoint import write_google_checkpoint
from bert_tf.weights.keras_hub_preset import write_keras_hub_preset


class GoogleFormat:
    """A `ModelFormat`."""

    def write(self, trained: TrainedModel, output: Path, console: Console) -> list[str]:
        return write_google_checkpoint(output, **model_contents(trained))

    def loading(self, card: TaskCard, config: BertConfig, *, lowercase: bool) -> list[str]:
        if card.google_script is None:
            return [
                "With google-research/bert (TensorFlow 1): none of its scripts has this head;",
                "its `modeling.BertModel` loads the encoder from `bert_model.ckpt`.",
            ]
        text_flags = f"--vocab_file=THIS_FOLDER/vocab.txt --do_lower_case={lowercase} "
        flags = text_flags if card.script_reads_text else ""
        return [
            "With google-research/bert (TensorFlow 1):",
            "```",
            f"python {card.google_script} --bert_config_file=THIS_FOLDER/bert_config.json \\",
            f"  --init_checkpoint=THIS_FOLDER/bert_model.ckpt {flags}…",
            "```",
        ]


class KerasHubFormat:
    """A `ModelFormat`; heads other than a classifier's are left out."""

    def write(self, trained: TrainedModel, output: Path, console: Console) -> list[str]:
        longest = trained.directory.config.max_position_embeddings
        if trained.task is not None and trained.task.card().is_keras_hub_task:
            longest = trained.task.max_seq_length
        return write_keras_hub_preset(output, **model_contents(trained), max_seq_length=longest)

    def loading(self, card: TaskCard, config: BertConfig, *, lowercase: bool) -> list[str]:
        return [
            "With KerasHub:",
            "```python",
            "import keras_hub",
            'tokenizer = keras_hub.models.BertTokenizer.from_preset("THIS_FOLDER")',
            f'model = keras_hub.models.{card.keras_hub_class}.from_preset("THIS_FOLDER")',
            "```",
        ]
