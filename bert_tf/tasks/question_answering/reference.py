"""What a model answers outside any exported graph: Python text layer, Keras model, NumPy rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.serving.single_batch import single_batch
from bert_tf.tasks.base.task import TaskData
from bert_tf.tasks.question_answering.answers.answer_choice import Answers
from bert_tf.tasks.question_answering.rows.question_rows import encode_questions

if TYPE_CHECKING:
    from bert_tf.tasks.question_answering.task import QuestionAnsweringTask


def reference_answers(
    task: QuestionAnsweringTask,
    model: Any,
    tokenizer: WordPieceTokenizer,
    questions: Sequence[str],
    contexts: Sequence[str],
) -> Answers:
    """The answer to each question from the context at the same place.

    Args:
        task: lengths and rules.
        model: built Keras model with its weights, float32.
        tokenizer: the model's.
        questions, contexts: of each row.
    """
    encoded = encode_questions(
        tokenizer,
        questions,
        contexts,
        np.arange(len(contexts)),
        max_seq_length=task.max_seq_length,
        doc_stride=task.doc_stride,
        max_query_length=task.max_query_length,
    )
    outputs = task.outputs(
        model, single_batch(encoded.rows, tokenizer.pad_id), training=False, dropout_key=None
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
