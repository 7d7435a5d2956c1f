"""Rows whose label is doubtful to models that were fine-tuned without them.

Confident learning (Northcutt et al. 2021, "Confident Learning: Estimating Uncertainty in Dataset
Labels"; reference code: cleanlab). Each row is predicted by a model of the other folds. Each class
has a threshold: the mean probability that these models give it on the rows with its label. A row
counts as a class if its probability reaches the threshold; a row that counts as another class than
its label is doubted. So the threshold of a class is low if models are less sure of it.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.base.console import Console
from bert_tf.base.files import replacing_file
from bert_tf.base.json_files import finished_sha256, note_finished
from bert_tf.base.wording import quantity
from bert_tf.config.sections.tables import NO_IDS
from bert_tf.data.rows.holdout import stratified_folds
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.file_rows import Table
from bert_tf.tasks.base.prediction_rows import TaskResults, labeled_rows
from bert_tf.tasks.base.review import warn_of_repeated_ids
from bert_tf.tasks.base.task import RowsCheck
from bert_tf.tasks.classification.metrics import LabelReport, classification_metrics
from bert_tf.tasks.classification.options import ClassificationLabelErrorsConfig
from bert_tf.tasks.classification.task import ClassificationTask
from bert_tf.tasks.registry import TASKS, finetune_config
from bert_tf.tasks.running.evaluation import DoubtedRow, LabelErrors, predict_rows
from bert_tf.tasks.running.finetuning import finetune


def find_label_errors(
    config: ClassificationLabelErrorsConfig, console: Console, check: RowsCheck, folder: Path
) -> LabelErrors:
    """Predict every row by a model of the other folds, and judge its label by confident learning.

    Args:
        config: options of `label-errors`.
        check: may reject rows.
        folder: keeps the folds, from which an interrupted job resumes.

    Raises:
        InputError, UsageError, StoppedEarly: see `bert_tf.tasks.running.finetuning.finetune`.
    """
    task, table = ClassificationTask.from_training(config, console)
    check([table])
    warn_of_repeated_ids(table, TableDialect.of(config), console)
    folds = stratified_folds(task.groups(table), config.folds)
    probabilities = np.zeros((len(table), len(task.labels)), np.float32)
    is_checked = np.zeros(len(table), bool)
    for fold in range(config.folds):
        rows = np.flatnonzero(folds == fold)
        if not len(rows):
            continue
        console.info(
            f"fold {fold + 1} of {config.folds}: {quantity(len(rows), 'row')} to check by a model "
            f"of the other {len(table) - len(rows):,}"
        )
        probabilities[rows], known = _predicted_fold(
            config, task, table, folds == fold, folder / f"fold-{fold + 1}", console
        )
        numbers = task.targets(table)["label"][rows]
        is_checked[rows] = known[numbers]
    return _judged(task, table, probabilities, is_checked)


def _predicted_fold(
    config: ClassificationLabelErrorsConfig,
    task: ClassificationTask,
    table: Table,
    is_held_out: np.ndarray,
    folder: Path,
    console: Console,
) -> tuple[np.ndarray, np.ndarray]:
    """Predict the held-out rows by a model of the others, or read stored predictions.

    Returns:
        Probabilities, float32 [held-out rows, labels], 0 for rows of unknown labels; and whether
        the model knows each label, bool [labels].
    """
    done = folder.with_suffix(".npz")
    note = folder.with_suffix(".json")
    if finished_sha256(note, done) is None:
        others, held_out = table.split(is_held_out)
        folder.mkdir(parents=True, exist_ok=True)
        train = folder / "train.jsonl"
        run = folder / "run"
        _write_table(train, others)
        finetune(_finetuning(config, train, run), console)
        known = np.isin(task.labels, task.gold(others))
        # A label that all its rows share with this fold is unknown to the model.
        is_known = known[task.targets(held_out)["label"]]
        probabilities = np.zeros((len(held_out), len(known)), np.float32)
        if is_known.any():
            predicted = predict_rows(str(run), held_out.split(is_known)[1], console)
            probabilities[np.ix_(is_known, known)] = predicted["probabilities"]
        with replacing_file(done) as aside, aside.open("wb") as stream:
            np.savez(stream, probabilities=probabilities, known=known)
        note_finished(note, done)
    if folder.is_dir():
        shutil.rmtree(folder)
    with np.load(done) as kept:
        return kept["probabilities"], kept["known"]


def _finetuning(config: ClassificationLabelErrorsConfig, train: Path, run: Path) -> Any:
    options = TASKS[config.task].options
    values = {field.name: getattr(config, field.name) for field in dataclasses.fields(options)}
    return finetune_config(
        {
            **values,
            "train": str(train),
            "output": str(run),
            "encoding": "utf-8",
            "header": True,
            "max_train_rows": 0,
            "id_column": NO_IDS,
            "corrections": None,  # its rows have them already
        }
    )


def _judged(
    task: ClassificationTask, table: Table, probabilities: np.ndarray, is_checked: np.ndarray
) -> LabelErrors:
    """Return the result from probabilities, float32 [rows, labels], of rows that were checked."""
    _, rows = table.split(is_checked)
    labels = task.targets(rows)["label"]
    checked = probabilities[is_checked]
    most_probable = checked.argmax(axis=1)
    predicted = {
        "predicted_label": [task.labels[number] for number in most_probable],
        "predicted_score": checked.max(axis=1),
    }
    measures = LabelReport(labels, most_probable, task.labels)
    return LabelErrors(
        source=table,
        inputs=task.inputs(),
        doubted=list(_doubted(task, rows, labels, checked)),
        unchecked=len(table) - len(rows),
        results=TaskResults(
            metrics=classification_metrics(labels, most_probable),
            predictions=labeled_rows(
                task.declaration.predictions, rows, task.gold(rows), predicted
            ),
            report=measures.report(),
        ),
    )


def _doubted(
    task: ClassificationTask, table: Table, labels: np.ndarray, probabilities: np.ndarray
) -> Iterator[DoubtedRow]:
    texts = task.texts(table)
    own = self_confidence(labels, probabilities)
    for row in doubtful_rows(labels, probabilities).tolist():
        suggested = int(probabilities[row].argmax())
        yield DoubtedRow(
            **table.place(row)._asdict(),
            label=task.labels[labels[row]],
            label_probability=float(own[row]),
            suggested_label=task.labels[suggested],
            suggested_probability=float(probabilities[row, suggested]),
            texts={name: column[row] for name, column in texts.items()},
        )


def _write_table(path: Path, table: Table) -> None:
    with replacing_file(path) as aside, aside.open("w", encoding="utf-8") as stream:
        for cells in zip(*table.columns.values(), strict=True):
            row = dict(zip(table.columns, cells, strict=True))
            stream.write(json.dumps(row) + "\n")


# Values of cleanlab: the tolerance of comparisons with a threshold, and the least threshold, which
# no probability of 0 reaches within this tolerance (`internal/constants.py`).
_ROUNDING = 1e-6
_LEAST_THRESHOLD = 2 * _ROUNDING
_NEVER_REACHED = 2.0  # threshold of a class without rows


def confident_thresholds(labels: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """Average the probability of each class over the rows with its label (section 3.1).

    Args:
        labels: int [rows].
        probabilities: float [rows, classes], of models trained without the rows.

    Returns:
        float64 [classes]. No probability reaches the threshold of a class without rows.
    """
    classes = probabilities.shape[1]
    own = self_confidence(labels, probabilities)
    rows = np.bincount(labels, minlength=classes)
    sums = np.bincount(labels, weights=own, minlength=classes)
    means = np.divide(sums, rows, out=np.full(classes, _NEVER_REACHED), where=rows > 0)
    return np.maximum(means, _LEAST_THRESHOLD)


def self_confidence(labels: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """Return the probability of each row's own label, float64 [rows].

    Args:
        labels: int [rows].
        probabilities: float [rows, classes].
    """
    return probabilities[np.arange(len(labels)), labels].astype(np.float64)


def doubtful_rows(labels: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """Find the rows off the diagonal of the confident joint, the least self-confident first.

    As cleanlab's `find_label_issues(filter_by="confident_learning")`: a row counts as the class
    whose threshold it reaches, and as its most probable class if it reaches several. A row whose
    most probable class is its label is never doubted.

    Args:
        labels: int [rows].
        probabilities: float [rows, classes], of models trained without the rows.

    Returns:
        int64 [doubted rows].
    """
    is_confident = probabilities >= confident_thresholds(labels, probabilities) - _ROUNDING
    most_probable = probabilities.argmax(axis=1)
    reached = is_confident.sum(axis=1)
    confident_class = np.where(reached > 1, most_probable, is_confident.argmax(axis=1))
    is_other = (confident_class != labels) & (most_probable != labels)
    doubted = np.flatnonzero((reached > 0) & is_other)
    order = np.argsort(self_confidence(labels, probabilities)[doubted], kind="stable")
    return doubted[order]
