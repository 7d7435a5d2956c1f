"""Convert BERT weights of other libraries to a model directory; the format is detected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bert_tf.base.checksums import check_sums
from bert_tf.base.errors import InputError, UsageError, missing_folder_error
from bert_tf.base.json_files import read_json_object
from bert_tf.base.wording import quantity
from bert_tf.config.bert_file import CONFIG, GOOGLE_CONFIG
from bert_tf.models.encoder import BertEncoder
from bert_tf.models.heads import ProblemType
from bert_tf.weights.google_checkpoint import read_google_checkpoint
from bert_tf.weights.model_directory import (
    ModelDirectory,
    load_weights,
    read_model_directory,
    write_directory,
)
from bert_tf.weights.sentence_transformers import transformer_folder
from bert_tf.weights.tensor_files import describe_folder

_CLASSIFIER = "BertForSequenceClassification"
_TOKEN_CLASSIFIER = "BertForTokenClassification"
_POOLER = "bert.pooler.dense.weight"
_MASKED_LM = "cls.predictions.transform.dense.weight"
_NEXT_SENTENCE = "cls.seq_relationship.weight"
# HuggingFace's classes and the tensors of their heads, which identify the class of a folder that
# does not name it. Classes with more tensors come first.
_HEADS = {
    _CLASSIFIER: ("classifier.weight",),
    "BertForQuestionAnswering": ("qa_outputs.weight",),
    "BertForPreTraining": (_MASKED_LM, _NEXT_SENTENCE),
    "BertForMaskedLM": (_MASKED_LM,),
    "BertForNextSentencePrediction": (_NEXT_SENTENCE,),
}
_WEIGHT_PREFIXES = ("bert.", "cls.", "classifier.", "qa_outputs.")
# Keys that sentence-transformers writes into the `config.json` of cross-encoders.
_CROSS_ENCODER_KEYS = {"sbert_ce_default_activation_function", "sentence_transformers"}
CROSS_ENCODER_FILE = "config_sentence_transformers.json"
# Tasks of GLUE as `finetuning_task` names them (transformers, `run_glue.py`).
_PAIR_TASKS = {"mnli", "mnli-mm", "mrpc", "qnli", "qqp", "rte", "snli", "sts-b", "stsb", "wnli"}
_SINGLE_TASKS = {"cola", "sst-2", "sst2"}
_ENTAILMENT = ("entailment", "contradiction")
# Copies of the word embeddings and of its bias in the masked-LM head, which are not written.
_TIED = ("cls.predictions.decoder.weight", "cls.predictions.decoder.bias")


def read_source(source: str | Path) -> ModelDirectory:
    """Open a folder with weights of a known format.

    Known are folders of HuggingFace, sentence-transformers and KerasHub, and checkpoints of
    google-research/bert and TF Model Garden. All weights of the encoder are loaded once, which
    rejects incomplete ones.

    Raises:
        UsageError: the format is unknown, files are missing, or the model is not a BERT.
        InputError: a file is damaged, or its SHA-256 is not the one in `SHA256SUMS`.
    """
    folder = Path(source)
    if not folder.is_dir():
        raise missing_folder_error(folder, "folder of weights")
    check_sums(folder)
    if (folder / GOOGLE_CONFIG).is_file():
        directory = read_google_checkpoint(folder)
    elif _is_keras_hub_preset(folder):
        from bert_tf.weights.keras_hub_preset import read_keras_hub_preset  # loads KerasHub

        directory = read_keras_hub_preset(folder)
    elif (transformer_folder(folder) / CONFIG).is_file() or (folder / "best").is_dir():
        directory = read_model_directory(folder)
    else:
        raise UsageError(f"{folder}: {describe_folder(folder)}")
    encoder = BertEncoder(directory.config)
    encoder.build_weights()
    load_weights(encoder, directory)  # rejects incomplete weights and wrong shapes
    return directory


def _is_keras_hub_preset(folder: Path) -> bool:
    return (folder / CONFIG).is_file() and "registered_name" in read_json_object(folder / CONFIG)


def architecture(directory: ModelDirectory) -> str:
    """Return HuggingFace's class of a model.

    It is the one in `config.json` if the weights have its head, else the one whose head they have.
    """
    for name in directory.document.get("architectures") or ():
        name = str(name).removeprefix("TF").removeprefix("Flax")
        if all(tensor in directory.tensors for tensor in _HEADS.get(name, ())):
            return name
    for name, head in _HEADS.items():
        if all(tensor in directory.tensors for tensor in head):
            scores_tokens = name == _CLASSIFIER and _POOLER not in directory.tensors
            return _TOKEN_CLASSIFIER if scores_tokens else name
    return "BertModel"


def classifier_labels(directory: ModelDirectory) -> list[str]:
    """Return the names of the classifier's logits; [] without a classifier.

    They come from `id2label` of `config.json`, or are `LABEL_0`, `LABEL_1`, …

    Raises:
        InputError: `id2label` does not fit the weights.
    """
    if "classifier.weight" not in directory.tensors:
        return []
    number = len(directory.tensors["classifier.weight"])
    names = directory.document.get("id2label")
    if not names:
        return [f"LABEL_{index}" for index in range(number)]
    if not isinstance(names, dict) or set(names) != {str(index) for index in range(number)}:
        raise InputError(
            f"{directory.path / CONFIG}: id2label does not name the classifier's "
            f"{quantity(number, 'label')} from 0 on"
        )
    labels = [str(names[str(index)]) for index in range(number)]
    for index, label in enumerate(labels):
        if label in labels[:index]:
            raise InputError(
                f"{directory.path / CONFIG}: id2label has the label {label!r} twice, as "
                f"{labels.index(label)} and {index}; give each a name of its own"
            )
    return labels


def classifier_problem(directory: ModelDirectory) -> ProblemType | None:
    """Return the purpose of the classifier.

    If `config.json` does not name it, one logit is a number, and several are labels of which one is
    chosen, like in HuggingFace's loss. None without a classifier, and for a problem that does not
    fit the number of logits.
    """
    number = len(classifier_labels(directory))
    if architecture(directory) != _CLASSIFIER or not number:
        return None
    number_fits = {
        ProblemType.REGRESSION: number == 1,
        ProblemType.SINGLE_LABEL_CLASSIFICATION: number > 1,
        ProblemType.MULTI_LABEL_CLASSIFICATION: True,
    }
    named = directory.document.get("problem_type")
    candidates = (problem for problem in ProblemType if named in (None, problem))
    return next((problem for problem in candidates if number_fits[problem]), None)


def reads_pairs(directory: ModelDirectory) -> bool | None:
    """Return whether a classifier reads pairs of texts; None if nothing in its folder says so.

    Weights of single texts and of pairs look alike. Cross-encoders of sentence-transformers name
    themselves in one of two files, models of GLUE tasks name the task, and labels of entailment
    are only of pairs.
    """
    document = directory.document
    settings = directory.path / CROSS_ENCODER_FILE
    if _CROSS_ENCODER_KEYS & document.keys():
        return True
    if settings.is_file() and read_json_object(settings).get("model_type") == "CrossEncoder":
        return True
    task = str(document.get("finetuning_task") or "").lower()
    if task in _PAIR_TASKS or task in _SINGLE_TASKS:
        return task in _PAIR_TASKS
    names = document.get("id2label")
    labels = [str(label).lower() for label in names.values()] if isinstance(names, dict) else []
    return True if any(label.endswith(_ENTAILMENT) for label in labels) else None


def write_imported(
    directory: ModelDirectory, output: str | Path, *, task: dict[str, Any] | None = None
) -> None:
    """Write a model directory with the encoder and all known heads, float32.

    Args:
        directory: result of `read_source`.
        output: path of the model directory; see `write_model_directory`.
        task: content of `task.json`; None keeps the one of the source, if any.
    """
    write_directory(
        output,
        config=directory.config,
        architecture=architecture(directory),
        problem_type=directory.document.get("problem_type"),
        labels=classifier_labels(directory),
        vocab=directory.vocab,
        lowercase=directory.lowercase,
        task=directory.task if task is None else task,
        recipe=directory.recipe,
        tensors={
            name: directory.tensors[name]
            for name in directory.tensors
            if name.startswith(_WEIGHT_PREFIXES) and name not in _TIED
        },
    )
