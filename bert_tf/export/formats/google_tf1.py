"""The checkpoint that the scripts of google-research/bert start from."""

from __future__ import annotations

from pathlib import Path

from bert_tf.base.console import Console
from bert_tf.config.bert import BertConfig
from bert_tf.export.formats.contents import model_contents
from bert_tf.export.loading import TrainedModel
from bert_tf.tasks.base.task_card import TaskCard
from bert_tf.weights.google_checkpoint import write_google_checkpoint


class GoogleFormat:
    """A `ModelFormat`."""

    def write(self, trained: TrainedModel, output: Path, console: Console) -> list[str]:
        """See `ModelFormat.write`."""
        return write_google_checkpoint(output, **model_contents(trained))

    def loading(self, card: TaskCard, config: BertConfig, *, lowercase: bool) -> list[str]:
        """See `ModelFormat.loading`."""
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


FORMAT = GoogleFormat()
