"""The checkpoint that TF Model Garden's BERT encoder reads."""

from __future__ import annotations

from pathlib import Path

from bert_tf.base.console import Console
from bert_tf.config.bert import BertConfig
from bert_tf.export.formats.contents import model_contents
from bert_tf.export.loading import TrainedModel
from bert_tf.tasks.base.task_card import TaskCard
from bert_tf.weights.model_garden_checkpoint import write_model_garden_checkpoint


class ModelGardenFormat:
    """A `ModelFormat`; heads of tasks are left out."""

    def write(self, trained: TrainedModel, output: Path, console: Console) -> list[str]:
        """See `ModelFormat.write`."""
        return write_model_garden_checkpoint(output, **model_contents(trained))

    def loading(self, card: TaskCard, config: BertConfig, *, lowercase: bool) -> list[str]:
        """See `ModelFormat.loading`."""
        activation = ['    activation="relu",'] if config.hidden_act == "relu" else []
        return [
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


FORMAT = ModelGardenFormat()
