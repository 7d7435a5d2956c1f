"""A SavedModel that takes raw text, in a HuggingFace folder: written, loaded again and checked."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf.fingerprint_pb2 import FingerprintDef

from bert_tf.base.console import Console
from bert_tf.base.errors import BertPipelineError
from bert_tf.config.bert import BertConfig
from bert_tf.engines.saved_model import FINGERPRINT, SAVED_MODEL, SavedModelEngine
from bert_tf.export.formats.huggingface import HuggingFaceFormat
from bert_tf.export.loading import TrainedModel
from bert_tf.export.text_embedder import TextEmbedder, reference_pooled
from bert_tf.serving.text_module import TextModule
from bert_tf.tasks.base.declaration import same_text
from bert_tf.tasks.base.task_card import TaskCard

TOLERANCE = 1e-4
_TRIAL_TEXTS = ("The service was friendly and quick.", "Where is it?", "", "Łódź, 北京, naïve")


class SavedModelFormat(HuggingFaceFormat):
    """A `ModelFormat`: what HuggingFace's libraries load, and the graph beside it."""

    def write(self, trained: TrainedModel, output: Path, console: Console) -> list[str]:
        """See `ModelFormat.write`."""
        notes = super().write(trained, output, console)
        console.progress("tracing the model")
        write_saved_model(trained, output)
        return notes

    def loading(self, card: TaskCard, config: BertConfig, *, lowercase: bool) -> list[str]:
        """See `ModelFormat.loading`."""
        return [
            "Text in, predictions out, with tensorflow and tensorflow_text alone:",
            "```python",
            "import tensorflow as tf",
            "import tensorflow_text",
            'model = tf.saved_model.load("THIS_FOLDER")',
            f'outputs = model.signatures["serving_default"]({card.signature_call})',
            f'print(outputs["{card.signature_output}"].numpy())',
            "```",
            *super().loading(card, config, lowercase=lowercase),
        ]


def write_saved_model(trained: TrainedModel, output: Path) -> SavedModelEngine:
    """Writes a SavedModel, loads it again and compares it with the model it was made from.

    Args:
        trained: the model.
        output: folder, made if it is missing; other files in it stay.

    Raises:
        BertPipelineError: the SavedModel gives other results; its graph is removed again.
    """
    module = text_module(trained)
    tf.saved_model.save(module, str(output), signatures=module.signatures())
    identify_by_content(output / FINGERPRINT)
    exported = SavedModelEngine(output)
    difference = largest_difference(trained, exported)
    if not difference <= TOLERANCE:
        (output / SAVED_MODEL).unlink()
        raise BertPipelineError(
            f"{output}: the SavedModel's results differ by {difference:.2g} from those of "
            f"{trained.directory.path}; report this with the output of bert-pipeline doctor"
        )
    return exported


def identify_by_content(path: Path) -> None:
    """Makes the random `uuid` of a SavedModel's fingerprint one that follows from its hashes, so
    that equal models are equal files."""
    fingerprint = FingerprintDef.FromString(path.read_bytes())
    fingerprint.ClearField("uuid")
    digest = hashlib.sha256(fingerprint.SerializeToString(deterministic=True)).digest()
    fingerprint.uuid = str(int.from_bytes(digest[:16], "big"))
    path.write_bytes(fingerprint.SerializeToString(deterministic=True))


def text_module(trained: TrainedModel) -> TextModule:
    """The module of a model's task; a model without one gives vectors."""
    if trained.task is not None:
        return trained.task.serving_module(trained.model, trained.tokenizer)
    return TextEmbedder(
        trained.encoder,
        trained.tokenizer,
        max_seq_length=trained.directory.config.max_position_embeddings,
    )


def largest_difference(trained: TrainedModel, exported: SavedModelEngine) -> float:
    """How far the results of a SavedModel are from the Keras model's, on a few texts."""
    trial_value = same_text if trained.task is None else trained.task.declaration.trial_value
    values = {
        name: [trial_value(name, text) for text in _TRIAL_TEXTS] for name in exported.input_names
    }
    got = exported.predict(values)
    if trained.task is None:
        reference = {"pooled_output": reference_pooled(trained, _TRIAL_TEXTS)}
    else:
        reference = trained.task.reference_outputs(trained.model, trained.tokenizer, values)
    return float(np.max([np.abs(got[name] - values).max() for name, values in reference.items()]))


FORMAT = SavedModelFormat()
