"""The section of `finetune`."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from bert_tf.config.section import option
from bert_tf.config.sections.loop import LoopSection
from bert_tf.config.sections.tables import TableSection

METRICS = {
    "classification": ("accuracy", "macro_f1", "matthews_correlation"),
    "qa": ("f1", "exact_match"),
}
TASKS = tuple(METRICS)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinetuneConfig(TableSection, LoopSection):
    """Fine-tunes a model for a task on labeled rows."""

    section_name: ClassVar[str] = "finetune"

    task: str = option("what is learned", choices=TASKS, positional=True)
    train: str = option("training rows: CSV, TSV or JSONL; SQuAD JSON for qa")
    eval: str | None = option("rows to evaluate on, in the same format", default=None)
    init: str = option("model directory, run directory or HuggingFace folder to start from")
    text_column: str = option("column of the text", default="text")
    text_pair_column: str | None = option("column of the second text", default=None)
    label_column: str = option("column of the label", default="label")
    question_column: str = option("column of the question", default="question")
    context_column: str = option("column of the context", default="context")
    answer_column: str = option("column of the answer's text", default="answer")
    answer_start_column: str = option(
        "column of the character where the answer starts in the context",
        default="answer_start",
    )
    max_train_rows: int = option(
        "use only the first rows (0: all)", default=0, minimum=0, advanced=True
    )
    max_seq_length: int = option(
        "pieces in a sequence, with [CLS] and [SEP] (0: 128, and 384 for qa)",
        default=0,
        minimum=0,
    )
    doc_stride: int = option(
        "pieces between windows of a long context, at most those that a window has room for",
        default=128,
        minimum=1,
    )
    max_query_length: int = option("pieces kept of a question", default=64, minimum=1)
    max_answer_length: int = option("pieces in an answer", default=30, minimum=1)
    n_best_size: int = option(
        "candidate spans kept a question", default=20, minimum=1, maximum=1000, advanced=True
    )
    null_score_diff_threshold: float = option(
        "answer nothing where the null score exceeds the best span's by more than this",
        default=0.0,
        advanced=True,
    )
    epochs: float = option(
        "passes over the training rows", default=3.0, above=0.0, maximum=1_000_000.0
    )
    batch_size: int = option(
        "rows an update, over all replicas", default=32, minimum=1, maximum=1_000_000
    )
    eval_batch_size: int = option(
        "rows a batch in evaluation", default=64, minimum=1, maximum=1_000_000
    )
    best_metric: str | None = option(
        "metric of the --eval rows whose best epoch becomes best/: "
        + "; ".join(f"{' or '.join(names)} ({task})" for task, names in METRICS.items())
        + "; loss, the lowest, for both (default: accuracy, f1)",
        default=None,
    )
    learning_rate: float = option("peak learning rate", default=5e-5, above=0.0, maximum=1.0)
    warmup_proportion: float = option(
        "share of the steps spent on warm-up", default=0.1, minimum=0.0, maximum=1.0
    )

    def faults(self) -> list[str]:
        """Refuses to stop by evaluations that there are none of, and rows too short for texts."""
        faults = super().faults()
        if self.early_stop_evals and self.eval is None:
            faults.append("early_stop_evals: needs rows to evaluate on; give --eval or set it to 0")
        known = (*METRICS[self.task], "loss")
        if self.best_metric not in (None, *known):
            faults.append(
                f"best_metric: {self.best_metric!r} is not a metric of {self.task}; choose one of "
                f"{', '.join(known)}"
            )
        elif self.best_metric and self.eval is None:
            faults.append("best_metric: needs rows to evaluate on; give --eval or leave it out")
        if self.gradient_accumulation_steps > self.batch_size:
            faults.append(
                f"gradient_accumulation_steps: is {self.gradient_accumulation_steps}, more than "
                f"the {self.batch_size} rows of a batch; use at most {self.batch_size}"
            )
        least = 3 if self.text_pair_column is None else 5
        if self.task == "classification" and self.sequence_length < least:
            faults.append(
                f"max_seq_length: {self.max_seq_length} leaves no piece of a text beside [CLS] and "
                f"[SEP]; use at least {least}"
            )
        return faults

    @property
    def sequence_length(self) -> int:
        """Pieces in a sequence, with the task's default filled in."""
        return self.max_seq_length or (384 if self.task == "qa" else 128)

    @property
    def selection_metric(self) -> str:
        """The metric that chooses the best epoch's model, with the task's default filled in."""
        return self.best_metric or METRICS[self.task][0]
