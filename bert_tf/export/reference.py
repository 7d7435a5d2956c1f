"""What a model predicts outside any SavedModel: Python text layer, Keras model, NumPy rules.

Every SavedModel is compared with it right after it was written.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from bert_tf.data.rows.answer_spans import Answers
from bert_tf.data.rows.encoded_rows import EncodedRows, encode_texts
from bert_tf.data.rows.question_rows import encode_questions
from bert_tf.export.loading import TrainedModel
from bert_tf.tasks.classification.task import ClassificationTask
from bert_tf.tasks.question_answering.task import QuestionAnsweringTask
from bert_tf.tasks.task import TaskData


def reference_probabilities(
    task: ClassificationTask,
    trained: TrainedModel,
    texts: Sequence[str],
    text_pairs: Sequence[str] | None,
) -> np.ndarray:
    """Probability of each label, float32 [texts, labels]."""
    rows = encode_texts(trained.tokenizer, texts, text_pairs, max_seq_length=task.max_seq_length)
    outputs = task.outputs(
        trained.model, _one_batch(rows, trained), training=False, dropout_key=None
    )
    return tf.nn.softmax(outputs["logits"]).numpy()


def reference_answers(
    task: QuestionAnsweringTask,
    trained: TrainedModel,
    questions: Sequence[str],
    contexts: Sequence[str],
) -> Answers:
    """The answer to each question from the context at the same place."""
    encoded = encode_questions(
        trained.tokenizer,
        questions,
        contexts,
        np.arange(len(contexts)),
        max_seq_length=task.max_seq_length,
        doc_stride=task.doc_stride,
        max_query_length=task.max_query_length,
    )
    outputs = task.outputs(
        trained.model, _one_batch(encoded.rows, trained), training=False, dropout_key=None
    )
    data = TaskData(
        source=questions,
        rows=encoded.rows,
        targets={},
        weights=np.ones(len(encoded.rows), np.float32),
        details=encoded,
    )
    arrays = {name: values.numpy() for name, values in outputs.items()}
    reduced = task.reduce(data, np.arange(len(encoded.rows)), arrays)
    return task.answers(encoded, list(contexts), reduced)


def reference_pooled(trained: TrainedModel, texts: Sequence[str]) -> np.ndarray:
    """The pooler's output, float32 [texts, hidden]."""
    longest = trained.directory.config.max_position_embeddings
    rows = encode_texts(trained.tokenizer, texts, None, max_seq_length=longest)
    batch = _one_batch(rows, trained)
    encoded = trained.encoder(
        batch["input_word_ids"],
        input_type_ids=batch["input_type_ids"],
        attention_mask=batch["input_mask"],
        training=False,
    )
    return np.asarray(encoded["pooled_output"])


def _one_batch(rows: EncodedRows, trained: TrainedModel) -> dict[str, tf.Tensor]:
    batch = rows.padded(
        np.arange(len(rows)), length=int(rows.lengths.max()), pad_id=trained.tokenizer.pad_id
    )
    return {name: tf.constant(values) for name, values in batch.items()}
