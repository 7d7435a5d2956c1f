"""What happens after every epoch of a fine-tuning: the model is measured and the best one kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bert_tf.base.files import write_text_atomically
from bert_tf.config.sections import FinetuneConfig
from bert_tf.tasks.base.task import Task
from bert_tf.tasks.running.prediction import Evaluator
from bert_tf.training.best_model import BestModelKeeper
from bert_tf.weights.model_directory import ModelDirectory, Restore


class EpochEvaluation:
    """What the loop calls after every epoch: the metrics on the evaluation rows, the best kept.

    Args:
        config: names the run directory and the metric that chooses the best model.
        model: what is trained.
        task: as learned from the training rows.
        init: has the vocabulary, which is also written next to the checkpoints.
        evaluator: None without evaluation rows; the last model is the best then.
        writes: False for workers that are not the chief.
        restore: puts back what the model was built without.
    """

    def __init__(
        self,
        config: FinetuneConfig,
        model: Any,
        task: Task,
        *,
        init: ModelDirectory,
        evaluator: Evaluator | None,
        writes: bool,
        restore: Restore,
    ):
        self._run = Path(config.output)
        self._task = task
        self._vocab = init.vocab
        self._evaluator = evaluator
        self._writes = writes
        self._best = BestModelKeeper(
            self._run / "best",
            model,
            metric=config.selection_metric,
            vocab=init.vocab,
            lowercase=init.lowercase,
            writes=writes,
            restore=restore,
        )

    def __call__(self, step: int, notes: dict[str, Any]) -> dict[str, float]:
        """The metrics of an eval line; see `bert_tf.training.loop.TrainingLoop`."""
        task, metrics = self._task, dict[str, float]()
        if self._evaluator is not None:
            task, results = self._evaluator.fit_and_run()
            metrics = results.metrics
        if self._writes and "best" not in notes:
            write_text_atomically(self._run / "vocab.txt", "\n".join([*self._vocab, ""]))
        self._best.keep_if_best({"step": step}, metrics, notes, task.settings())
        return metrics
