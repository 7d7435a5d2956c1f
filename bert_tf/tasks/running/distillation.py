"""Learning from a teacher: its logits for all training rows, computed once, and the loss."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from safetensors.numpy import load_file, save_file

from bert_tf.base.checksums import file_sha256
from bert_tf.base.console import Advance, Console
from bert_tf.base.errors import UsageError
from bert_tf.base.files import replacing_file
from bert_tf.base.json_files import finished_sha256, note_finished
from bert_tf.config.sections.finetuning import Teaching
from bert_tf.data.rows.encoded_rows import Batching
from bert_tf.data.tables.file_rows import Table
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.tasks.base.table_task import Student
from bert_tf.tasks.base.task import FinetuningLoss
from bert_tf.tasks.base.task_data import TaskData
from bert_tf.tasks.registry import declared_task, task_from_settings
from bert_tf.tasks.running.batches import ForwardPass
from bert_tf.training.arithmetic import has_accelerator
from bert_tf.training.protocols import Batch, LossParts
from bert_tf.weights.model_directory import ModelDirectory, load_all_weights, read_model_directory

TEACHER_LOGITS = "teacher_logits"
SOFT_WEIGHTS = "soft_weights"
_BATCH_TOKENS = 4096


@dataclasses.dataclass(frozen=True)
class SoftLabels:
    """Adds a teacher's logits to training rows.

    Logits are computed once, before the training, and kept in a folder: a run that resumes reads
    them if teacher, texts and policy are the same.

    Attributes:
        teaching: the teacher and the weight of its loss.
        folder: folder that keeps the logits.
        policy: Keras dtype policy that the teacher computes in.
        writes: False for workers other than the chief.
    """

    teaching: Teaching
    folder: Path
    _: dataclasses.KW_ONLY
    policy: str
    writes: bool
    console: Console

    def added(
        self,
        task: Student,
        train: TaskData,
        unlabeled: Table | None,
        tokenizer: WordPieceTokenizer,
    ) -> TaskData:
        """Add logits to the rows of a student, and rows without labels after them.

        Args:
            task: the student.
            train: its labeled training rows.
            unlabeled: rows to learn only from the teacher; None for none.
            tokenizer: tokenizer of the student.

        Returns:
            The rows with the targets `teacher_logits`, float32 [rows, logits], and `soft_weights`,
            float32 [rows].

        Raises:
            UsageError: the teacher is of another task, inputs or labels.
        """
        path = self.teaching.teacher
        directory = read_model_directory(path)
        teacher = _teacher_task(directory, task, path)
        order = task.order_of_logits(teacher, path)
        texts = task.texts(train.source)
        if unlabeled is not None:
            # The teacher reads labeled and unlabeled texts alike, in this order.
            texts = {name: [*texts[name], *more] for name, more in task.texts(unlabeled).items()}
            train = _followed_by(train, task, unlabeled, tokenizer)
        logits = self._logits(directory, teacher, texts)
        owners = np.arange(len(train.rows)) if train.owners is None else train.owners
        weights = train.weights.copy()
        if unlabeled is not None:
            is_unlabeled = owners >= len(train.source)
            # The windows of a text share a weight of 1, as those of labeled texts do.
            weights[is_unlabeled] = (1.0 / np.bincount(owners))[owners[is_unlabeled]]
        soft = {TEACHER_LOGITS: logits[:, order][owners], SOFT_WEIGHTS: weights}
        return dataclasses.replace(train, targets={**train.targets, **soft}, chance_loss=None)

    def _logits(
        self, directory: ModelDirectory, teacher: Student, texts: dict[str, list[str]]
    ) -> np.ndarray:
        """Return cached teacher logits of these texts, or compute them.

        Returns:
            float32 [texts, logits], in the order of the teacher's logits.
        """
        kept = self.folder / "logits.safetensors"
        note = self.folder / "logits.json"
        key = _key_of(directory.path, texts, self.policy)
        if finished_sha256(note, kept, made_from=key) is not None:
            return load_file(kept)["logits"]
        logits = self._computed(directory, teacher, texts)
        if self.writes:
            with replacing_file(kept) as aside:
                save_file({"logits": logits}, aside)
            note_finished(note, kept, made_from=key)
        return logits

    def _computed(
        self, directory: ModelDirectory, teacher: Student, texts: dict[str, list[str]]
    ) -> np.ndarray:
        tokenizer = WordPieceTokenizer(directory.vocab, lowercase=directory.lowercase)
        model = teacher.build_model(directory.config, policy=self.policy)
        load_all_weights(model, directory)
        rows = teacher.model_input(tokenizer, texts)
        data = TaskData(
            source=None,
            rows=rows,
            targets={},
            weights=np.ones(len(rows), np.float32),
            owners=rows.owners,
            averages_outputs=True,
        )
        num_rows = len(next(iter(texts.values())))
        batching = Batching(
            max_seq_length=teacher.max_seq_length,
            pad_id=tokenizer.pad_id,
            batch_tokens=_BATCH_TOKENS,
            has_few_shapes=has_accelerator(),
        )
        forward = ForwardPass(
            lambda batch: teacher.outputs(model, batch, training=False, dropout_key=None)["logits"],
            data,
            batching,
            rows=num_rows,
            console=self.console,
            action="teacher",
        )
        reduced = forward.in_row_order(
            [{"logits": logits.numpy()[: len(chosen)]} for chosen, logits in forward]
        )
        self.console.end_progress(Advance.counted("teacher", num_rows, num_rows))
        return data.averaged(reduced)[1]["logits"]


class DistillationLoss(FinetuningLoss):
    """The loss of the labels and the distance to the teacher, weighted (Hinton et al. 2015).

    Each is a mean over its rows: of the labels over labeled rows, of the teacher over all. Their
    weighted sum is the `loss`; both weighted terms are logged.

    Args:
        task: the student.
        teaching: the weight of the teacher, and the temperature of both softmaxes.
    """

    def __init__(self, task: Student, teaching: Teaching):
        super().__init__(task)
        self._student = task
        self._weight = teaching.weight
        self._temperature = teaching.temperature

    def weights(self, batch: Batch) -> dict[str, tf.Tensor]:
        return {
            "label_loss": super().weights(batch)["loss"],
            "teacher_loss": tf.reduce_sum(batch[SOFT_WEIGHTS]),
        }

    def __call__(
        self, model: Any, batch: Batch, *, training: bool, dropout_key: tf.Tensor | None
    ) -> LossParts:
        task = self._student
        outputs = task.outputs(model, batch, training=training, dropout_key=dropout_key)
        parts = task.loss_parts(outputs, batch)
        soft = task.soft_losses(
            outputs["logits"], batch[TEACHER_LOGITS], temperature=self._temperature
        )
        return dataclasses.replace(
            parts,
            losses={
                "label_loss": (1.0 - self._weight) * parts.losses["loss"],
                "teacher_loss": self._weight * tf.reduce_sum(soft * batch[SOFT_WEIGHTS]),
            },
        )


def _teacher_task(directory: ModelDirectory, task: Student, path: str) -> Student:
    """Return the teacher's task.

    Raises:
        UsageError: it is another task, or takes other inputs.
    """
    name = task.declaration.name
    other = declared_task(directory.task, path).name
    if other != name:
        raise UsageError(
            f"--teacher {path}: was fine-tuned for {other}; a teacher for {name} must be too"
        )
    teacher = task_from_settings(directory.task, path).as_student()
    if teacher.inputs() != task.inputs():
        raise UsageError(
            f"--teacher {path}: takes {' and '.join(teacher.inputs())}, the training rows have "
            f"{' and '.join(task.inputs())}; both must be single texts, or pairs"
        )
    return teacher


def _followed_by(
    train: TaskData, task: Student, unlabeled: Table, tokenizer: WordPieceTokenizer
) -> TaskData:
    """Append the rows without labels, with targets and weights of 0."""
    added = task.model_input(tokenizer, task.texts(unlabeled))
    owners = train.owners
    if owners is not None and added.owners is not None:
        # The texts without labels are numbered on from the last labeled one.
        owners = np.concatenate([owners, len(train.source) + added.owners])
    return dataclasses.replace(
        train,
        rows=train.rows.followed_by(added),
        targets={
            name: np.concatenate([values, np.zeros((len(added), *values.shape[1:]), values.dtype)])
            for name, values in train.targets.items()
        },
        weights=np.concatenate([train.weights, np.zeros(len(added), np.float32)]),
        owners=owners,
    )


def _key_of(teacher: Path, texts: dict[str, list[str]], policy: str) -> str:
    """Return a hash of the teacher's files, the texts, and the precision."""
    digest = hashlib.sha256(policy.encode())
    for file in sorted(path for path in teacher.iterdir() if path.is_file()):
        digest.update(f"{file.name} {file_sha256(file)}\n".encode())
    for name, column in texts.items():
        digest.update(f"{name} {len(column)}\n".encode())
        for text in column:
            # The length is hashed, too, so that texts cannot be confused by where one ends.
            encoded = text.encode("utf-8", errors="surrogatepass")
            digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return digest.hexdigest()
