"""What a model card says of question answering."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bert_tf.tasks.base.declaration import TaskCard

if TYPE_CHECKING:
    from bert_tf.tasks.question_answering.task import QuestionAnsweringTask


def question_answering_card(task: QuestionAnsweringTask) -> TaskCard:
    """Columns, lengths and rules of a model.

    Args:
        task: the model's.
    """
    columns = task.columns
    if task.may_be_unanswerable:
        tuned = ", tuned for F1 on evaluation rows" if task.tune_null_threshold else ""
        unanswered = (
            "a question may remain without an answer: if the null score exceeds the best span's by "
            f"more than {task.null_score_diff_threshold:.3g}{tuned}"
        )
    else:
        unanswered = "a question never remains without an answer"
    return TaskCard(
        title="Question answering model",
        facts=(
            f"reads the columns `{columns.question}` and `{columns.context}`; was trained on "
            f"`{columns.answer}` and `{columns.answer_start}`, or on SQuAD JSON",
            f"contexts of any length, read in windows of {task.max_seq_length} tokens with a "
            f"stride of {task.doc_stride}; answers up to {task.max_answer_length} tokens",
            unanswered,
            *_sentence_fact(task.sentence_margin),
        ),
        example={"question": "Who?", "context": "Ada wrote it."},
        signature_output="predicted_answer",
        transformers_class="AutoModelForQuestionAnswering",
        pipeline_tag="question-answering",
        google_script="run_squad.py",
    )


def _sentence_fact(margin: float) -> tuple[str, ...]:
    if not margin:
        return ()
    return (
        "an answer that would run over the end of a sentence yields to the best one within a "
        f"sentence whose score is lower by at most {margin:g}",
    )
