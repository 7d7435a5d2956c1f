"""A SavedModel, of texts or of ids, in a HuggingFace folder: written, loaded again and checked."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf.fingerprint_pb2 import FingerprintDef
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from bert_tf.base.console import Advance, Console
from bert_tf.base.errors import BertPipelineError
from bert_tf.base.files import plain_path
from bert_tf.base.wording import quantity
from bert_tf.config.embedding_recipe import EmbeddingRecipe, prepared_texts
from bert_tf.config.registries import FOLDER, IDS, SERVING, TEXT
from bert_tf.data.rows.host_rows import pack_host_texts
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.embeddings.settings import EMBEDDING
from bert_tf.engines.registry import SERVING_VERSION
from bert_tf.engines.saved_model import FINGERPRINT, SAVED_MODEL, SavedModelEngine
from bert_tf.export.libraries import HuggingFaceFormat, write_folder
from bert_tf.export.loading import TrainedModel
from bert_tf.layers.pooling import pool_tokens, unit_vectors
from bert_tf.serving import signatures
from bert_tf.serving.row_batches import single_batch
from bert_tf.serving.text_module import Signatures, TextModule
from bert_tf.tasks.base.declaration import TaskCard, same_text

TOLERANCE = 1e-4  # largest difference between the results of graph and model, see `_largest`
_TRIAL_TEXTS = ("The service was friendly and quick.", "Where is it?", "", "Łódź, 北京, naïve")
_TRIAL_LENGTHS = (7, 2, 5)  # tokens of rows of ids
_LOWEST = -1e4  # lower logits are not compared: float32 rounds those of padding to dozens
# An address of TensorFlow Serving that its image has by default.
_SERVER = "http://localhost:8501/v1/models/bert:predict"
# The first release of TensorFlow Serving whose binaries have each: 2.10 was built with TF Text 2.7,
# 2.12 with 2.12 (`org_tensorflow_text` in its workspace.bzl; tensorflow/serving issue 2064).
_FIRST_SERVING = {"FastWordpieceTokenizeWithOffsets": (2, 10), "FastBertNormalize": (2, 12)}


class TextEmbedder(TextModule):
    """Maps `text` to vectors with a built `BertEncoder`, float32.

    Outputs, float32 [n, hidden]: `mean_embedding`, the mean of the last layer over all tokens,
    [CLS] and [SEP] included (Reimers and Gurevych 2019, section 3); with a pooler its
    `pooled_output` (Devlin et al. 2019, section 3); with a recipe `embedding`. Without a recipe,
    texts are cut to the positions of the model.

    Args:
        encoder: the encoder.
        tokenizer: its tokenizer.
        recipe: recipe of embeddings; None for none.
    """

    input_names: ClassVar[tuple[str, ...]] = ("text",)

    def __init__(
        self,
        encoder: Any,
        tokenizer: WordPieceTokenizer,
        recipe: EmbeddingRecipe | None,
    ):
        longest = encoder.config.max_position_embeddings
        super().__init__(encoder, tokenizer, longest if recipe is None else recipe.max_seq_length)
        self._recipe = recipe
        vectors = ["mean_embedding"]
        if encoder.has_pooler:
            vectors.append("pooled_output")
        if recipe is not None:
            vectors.append(EMBEDDING)
        self._vectors = tuple(vectors)  # names of the outputs

    def predict(self, texts: dict[str, tf.Tensor], batch_tokens: tf.Tensor) -> dict[str, tf.Tensor]:
        sequences = self.packed(self.tokenizer.tokenize(self._prepared(texts["text"])))

        def embed(batch: dict[str, tf.Tensor], _: tf.Tensor) -> tuple[tf.Tensor, ...]:
            outputs = self.head_outputs(batch)
            return tuple(outputs[name] for name in self._vectors)

        width = tf.TensorSpec([self.model.config.hidden_size], tf.float32)
        vectors = self.over_rows(embed, sequences, batch_tokens, *[width] * len(self._vectors))
        return dict(zip(self._vectors, vectors, strict=True))

    def _prepared(self, texts: tf.Tensor) -> tf.Tensor:
        if self._recipe is None:
            return texts
        texts = tf.strings.join([self._recipe.prompt(), texts])
        if not self._recipe.lowercase_texts:
            return texts
        # TensorFlow lower-cases up to a NUL and drops the rest; BERT's rules drop only the NUL.
        texts = tf.strings.regex_replace(tf.strings.regex_replace(texts, r"\x00", ""), "Σ", "σ")
        return tf.strings.lower(texts, encoding="utf-8")

    def head_outputs(self, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        encoded = self.model(
            batch["input_word_ids"],
            input_type_ids=batch["input_type_ids"],
            attention_mask=batch["input_mask"],
            training=False,
        )
        sequence = encoded["sequence_output"]
        mask = batch["input_mask"]
        outputs = {
            "sequence_output": sequence,
            "mean_embedding": pool_tokens(sequence, mask, "mean"),
        }
        if self.model.has_pooler:
            outputs["pooled_output"] = encoded["pooled_output"]
        if self._recipe is not None:
            vectors = pool_tokens(sequence, mask, self._recipe.pooling)
            outputs[EMBEDDING] = unit_vectors(vectors) if self._recipe.normalize else vectors
        return outputs


def reference_vectors(trained: TrainedModel, texts: Sequence[str]) -> dict[str, np.ndarray]:
    """Compute the vectors of the module outside of any exported graph, float32 [texts, hidden]."""
    module = text_module(trained)
    tokenizer = trained.tokenizer
    recipe = trained.recipe
    if recipe is not None:
        texts = prepared_texts(texts, prompt=recipe.prompt(), lowercase=recipe.lowercase_texts)
    tokens = tokenizer.tokenize_texts(texts)
    rows = pack_host_texts(tokens, max_seq_length=module.max_seq_length, tokenizer=tokenizer)
    outputs = module.head_outputs(single_batch(rows, tokenizer.pad_id))
    return {name: np.asarray(value) for name, value in outputs.items() if name != "sequence_output"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class SavedModelFormat(HuggingFaceFormat):
    """A HuggingFace folder with the graph beside it; for serving, a version with only the graph.

    Attributes:
        layout: FOLDER or SERVING.
        inputs: TEXT or IDS.
    """

    layout: str = FOLDER
    inputs: str = TEXT

    def write(self, trained: TrainedModel, output: Path, console: Console) -> list[str]:
        write_folder(trained, output, with_weights=self.layout == FOLDER)
        console.progress(Advance("tracing the model"))
        if self.inputs == IDS:
            write_ids_model(trained, output)
        else:
            write_saved_model(trained, output)
        return _serving_notes(output) if self.layout == SERVING else []

    def loading(self, card: TaskCard, *, lowercase: bool) -> list[str]:
        if self.layout == SERVING:
            folder = f"THIS_FOLDER/{SERVING_VERSION}"
            return [*self._with_tensorflow(card, folder), *self._served(card)]
        with_transformers = super().loading(card, lowercase=lowercase)
        return [*self._with_tensorflow(card, "THIS_FOLDER"), *with_transformers]

    def _with_tensorflow(self, card: TaskCard, folder: str) -> list[str]:
        load = f'model = tf.saved_model.load("{folder}").signatures["{signatures.SERVING}"]'
        if self.inputs == IDS:
            return [
                "Ids of tokens in (the lines of `vocab.txt`, counted from 0, padded with `[PAD]`), "
                "logits out, only with tensorflow:",
                "```python",
                "import tensorflow as tf",
                load,
                f"rows = tf.constant({_example_ids(card)})",
                "outputs = model(",
                "    input_word_ids=rows,",
                "    input_mask=tf.ones_like(rows),",
                "    input_type_ids=tf.zeros_like(rows),",
                ")",
                "print([(name, values.numpy()) for name, values in outputs.items()])",
                "```",
            ]
        return [
            "Text in, predictions out, only with tensorflow and tensorflow_text:",
            "```python",
            "import tensorflow as tf",
            "import tensorflow_text",
            load,
            f"outputs = model({card.signature_call})",
            f'print(outputs["{card.signature_output}"].numpy())',
            "```",
        ]

    def _served(self, card: TaskCard) -> list[str]:
        ids = _example_ids(card)[0]
        row: Mapping[str, Any] = card.example
        if self.inputs == IDS:
            values = (ids, _like(ids, 1), _like(ids, 0))
            row = dict(zip(signatures.IDS_INPUTS, values, strict=True))
        body = json.dumps({"instances": [dict(row)]}, ensure_ascii=False)
        return [
            "With TensorFlow Serving:",
            "```",
            'docker run --rm -p 8501:8501 -v "$PWD/THIS_FOLDER:/models/bert" '
            "-e MODEL_NAME=bert tensorflow/serving",
            f"curl {_SERVER} -d '{body}'",
            "```",
        ]


def _example_ids(card: TaskCard) -> list[Any]:
    """Return ids of a row for the shortest vocabulary, or of a row of several sequences."""
    row = [2, 1, 3]
    has_lists = any(not isinstance(value, str) for value in card.example.values())
    return [[row, row]] if has_lists else [row]


def _like(ids: list[Any], value: int) -> list[Any]:
    """Return lists of the same shape that hold a single value."""
    return [_like(item, value) if isinstance(item, list) else value for item in ids]


def _serving_notes(folder: Path) -> list[str]:
    operations = text_operations(folder / SAVED_MODEL)
    if not operations:
        return []
    first = first_serving_release(operations)
    needed = f"{first} or later has them" if first else "may not have them in any release"
    return [
        f"The graph uses {quantity(len(operations), 'operation')} of tensorflow_text, "
        f"{' and '.join(operations)}; TensorFlow Serving {needed}."
    ]


def write_saved_model(trained: TrainedModel, output: Path) -> SavedModelEngine:
    """Write a SavedModel that takes texts, load it again and compare it with the model.

    Raises:
        BertPipelineError: the results differ; the graph has been removed.
    """
    module = text_module(trained)
    _save(module, module.signatures(), output)
    exported = SavedModelEngine(output)
    by_ids = ids_difference(module, exported.signature(signatures.IDS))
    _check_difference(max(largest_difference(trained, exported), by_ids), trained, output)
    return exported


def write_ids_model(trained: TrainedModel, output: Path) -> None:
    """Write a SavedModel that takes ids; see `write_saved_model`."""
    module = text_module(trained)
    _save(module.without_texts(), module.ids_signatures(), output)
    with plain_path(output) as plain:
        loaded: Any = tf.saved_model.load(str(plain))
    difference = ids_difference(module, loaded.signatures[signatures.SERVING])
    _check_difference(difference, trained, output)


def _save(module: tf.Module, functions: Signatures, output: Path) -> None:
    tf.saved_model.save(module, str(output), signatures=functions)
    identify_by_content(output / FINGERPRINT)


def _check_difference(difference: float, trained: TrainedModel, output: Path) -> None:
    if not difference <= TOLERANCE:
        (output / SAVED_MODEL).unlink()
        raise BertPipelineError(
            f"{output}: the SavedModel's results differ by {difference:.2g} from those of "
            f"{trained.directory.path}; report this with the output of bert-pipeline doctor"
        )


def identify_by_content(path: Path) -> None:
    """Derive the random `uuid` of a fingerprint from its hashes: equal models, equal files."""
    fingerprint = FingerprintDef.FromString(path.read_bytes())
    fingerprint.ClearField("uuid")
    digest = hashlib.sha256(fingerprint.SerializeToString(deterministic=True)).digest()
    fingerprint.uuid = str(int.from_bytes(digest[:16], "big"))
    path.write_bytes(fingerprint.SerializeToString(deterministic=True))


def text_module(trained: TrainedModel) -> TextModule:
    """Return the module that is exported: that of the task, or vectors of texts."""
    if trained.task is not None:
        return trained.task.serving_module(trained.model, trained.tokenizer)
    return TextEmbedder(trained.encoder, trained.tokenizer, trained.recipe)


def largest_difference(trained: TrainedModel, exported: SavedModelEngine) -> float:
    """Return the largest difference of a SavedModel from the Keras model, on a few texts."""
    trial_value = same_text if trained.task is None else trained.task.declaration.trial_value
    values = {
        name: [trial_value(name, text) for text in _TRIAL_TEXTS] for name in exported.input_names
    }
    got = exported.predict(values)
    if trained.task is None:
        reference = reference_vectors(trained, _TRIAL_TEXTS)
    else:
        reference = trained.task.reference_outputs(trained.model, trained.tokenizer, values)
    return _largest(got, reference)


def ids_difference(module: TextModule, signature: Any) -> float:
    """Return the largest difference of a signature that takes ids from the Keras model."""
    mask = np.arange(max(_TRIAL_LENGTHS)) < np.array(_TRIAL_LENGTHS)[:, None]
    numbers = np.arange(mask.size).reshape(mask.shape)
    rows = {
        "input_word_ids": np.where(mask, numbers % module.tokenizer.vocab_size, 0),
        "input_mask": mask,
        "input_type_ids": np.where(mask, numbers % module.model.config.type_vocab_size, 0),
    }
    if module.ids_rank > 2:  # one row, whose sequences these are
        rows = {name: values[None] for name, values in rows.items()}
    batch = {name: tf.constant(values.astype(np.int32)) for name, values in rows.items()}
    return _largest(signature(**batch), module.head_outputs(batch))


def _largest(got: Mapping[str, Any], expected: Mapping[str, Any]) -> float:
    """Return the largest difference, relative to numbers above 1, of which float32 rounds more."""
    differences = []
    for name, values in expected.items():
        result = np.asarray(got[name]).clip(_LOWEST)
        reference = np.asarray(values).clip(_LOWEST)
        scale = np.maximum(np.abs(reference), 1)
        differences.append((np.abs(result - reference) / scale).max())
    return float(np.max(differences))


def text_operations(saved_model: Path) -> list[str]:
    """Return the operations of tensorflow_text in the graphs of a `saved_model.pb`, sorted."""
    graphs = SavedModel.FromString(saved_model.read_bytes()).meta_graphs
    used = {
        operation.name for graph in graphs for operation in graph.meta_info_def.stripped_op_list.op
    }
    return sorted(name for name in used if name in _FIRST_SERVING or name.startswith("TFText>"))


def first_serving_release(operations: list[str]) -> str | None:
    """Return the first TensorFlow Serving that has all of some operations; None if unknown."""
    if not all(name in _FIRST_SERVING for name in operations):
        return None
    return ".".join(map(str, max(_FIRST_SERVING[name] for name in operations)))
