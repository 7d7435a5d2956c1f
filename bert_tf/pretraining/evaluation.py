"""Evaluate a pretraining run on held-out records, and keep its best model."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.config.sections.pretraining import MLM_LOSS, PAIR_ACCURACY, TrainConfig, loss_of
from bert_tf.data.records.dataset_info import PretrainingData
from bert_tf.data.records.parsing import find_damage
from bert_tf.data.records.pretraining_inputs import evaluation_batches
from bert_tf.pretraining.findings import UNIGRAM_ENTROPY, unigram_entropy
from bert_tf.pretraining.loss import PretrainingLoss
from bert_tf.pretraining.minimal_pairs import PairJudge, accuracy_error
from bert_tf.pretraining.phases import PretrainingPhase
from bert_tf.training.arithmetic import Arithmetic
from bert_tf.training.best_model import STOP, BestModelKeeper
from bert_tf.training.distribution import WorkerSync
from bert_tf.training.evaluation import Evaluation
from bert_tf.training.timeline import phase_ends, phase_of

_LARGEST_POWER = 700.0  # e ** 700 is about the largest power that a float can hold


def _eval_batches(
    config: TrainConfig, phase: PretrainingPhase, data: PretrainingData
) -> Callable[[], tf.data.Dataset]:
    """Return a function that opens eval records in batches as large as the micro-batches."""
    return functools.partial(
        evaluation_batches,
        data,
        batch_size=phase.batch_size // phase.accumulation_steps,
        limit=config.eval_examples,
    )


class RecordsEvaluation:
    """Evaluates on the eval records of the current phase, and keeps the best model.

    An instance is the argument `evaluate` of `TrainingLoop`.

    Args:
        config: config of the run.
        phases: phases of the run.
        model: a built model.
        loss: loss that trains it.
        strategy: strategy that batches are distributed by.
        arithmetic: how steps are computed.
        best: keeps the best model.
        judge: measures the model on minimal pairs; None without them.
        sets: further records to evaluate on, by name.
        console: receives which data have no eval shards.

    Raises:
        UsageError: early stopping is set, but there is nothing to evaluate on.
    """

    def __init__(
        self,
        config: TrainConfig,
        phases: Sequence[PretrainingPhase],
        *,
        model: Any,
        loss: PretrainingLoss,
        strategy: tf.distribute.Strategy,
        arithmetic: Arithmetic,
        best: BestModelKeeper,
        console: Console,
        judge: PairJudge | None = None,
        sets: Mapping[str, PretrainingData] | None = None,
    ):
        self._judge = judge
        self._config = config
        self._phases = phases
        self._ends = phase_ends([phase.steps for phase in phases])
        self._best = best
        self._console = console

        def evaluation(loss: PretrainingLoss, dataset: Callable[[], tf.data.Dataset]) -> Evaluation:
            return Evaluation(
                model=model,
                loss=loss,
                strategy=strategy,
                make_dataset=dataset,
                arithmetic=arithmetic,
            )

        self._datasets = [_eval_batches(config, phase, phase.data) for phase in phases]
        self._evaluations = [evaluation(loss, dataset) for dataset in self._datasets]
        self._sets = {
            name: evaluation(PretrainingLoss("none"), _eval_batches(config, phases[0], data))
            for name, data in (sets or {}).items()
        }
        self._before: dict[str, float] = {}  # losses on the sets before training
        self._entropies: dict[int, float] = {}  # by phase
        self._check_eval_shards()
        self._of_chief = WorkerSync(strategy).of_chief

    def _check_eval_shards(self) -> None:
        """Warn of phases without eval shards; raise UsageError if early stopping needs them."""
        config = self._config
        if config.selection_metric != MLM_LOSS:
            return
        for phase in self._phases:
            if phase.data.eval_shards:
                continue
            cure = "preprocess with --eval-fraction above 0 to have some"
            lacks = f"{phase.data.directory} has no eval shards"
            if config.early_stop_evals:
                raise UsageError(f"train.early_stop_evals: {lacks}; set it to 0, or {cure}")
            self._console.warn(
                f"{lacks}, so nothing is evaluated and best/ is the last model; {cure}"
            )

    def measure_before(self) -> None:
        """Measure the model on the further sets as it is before training, to see changes later.

        A resumed run measures the same again, since it also begins with the model of `--init`.
        """
        self._before = self._losses_of_sets()
        for name, loss in self._before.items():
            self._console.info(f"before training: {name} {loss:.4f}")

    def _losses_of_sets(self) -> dict[str, float]:
        losses = {}
        for name, evaluation in self._sets.items():
            metrics = evaluation.run()
            if MLM_LOSS in metrics:
                losses[loss_of(name)] = metrics[MLM_LOSS]
        return losses

    def _add_sets(self, metrics: dict[str, float]) -> None:
        """Add losses on the further sets, and how they have changed."""
        losses = self._losses_of_sets()
        metrics |= losses
        for name, before in self._before.items():
            metrics[_change_of(name)] = losses[name] - before

    def _end_if_forgetting(self, metrics: Mapping[str, float], notes: dict[str, Any]) -> None:
        """Note to end a run that forgets, by metrics that are the same on all workers."""
        most = self._config.max_forgetting
        for name in self._before:
            change = metrics[_change_of(name)]
            if most and change > most:
                notes[STOP] = (
                    f"{name} is {change:.4f} above that before training, more than "
                    f"max_forgetting, {most:g}"
                )

    def __call__(self, step: int, notes: dict[str, Any]) -> dict[str, float]:
        """Return the metrics of an eval line, on all workers those of the chief.

        They are {} if there is nothing to evaluate on.
        """
        number = phase_of(self._ends, step - 1)
        data = self._phases[number].data
        metrics = self._evaluate(number) if data.eval_shards else {}
        if metrics:
            metrics["perplexity"] = math.exp(min(metrics["mlm_loss"], _LARGEST_POWER))
            metrics[UNIGRAM_ENTROPY] = self._entropy(number)
        elif data.eval_shards:
            self._console.warn(
                f"the eval shards of {data.directory} are empty; evaluation is skipped"
            )
        self._add_sets(metrics)
        errors = {}
        if self._judge is not None:
            metrics[PAIR_ACCURACY] = self._judge.accuracy()
            errors[PAIR_ACCURACY] = accuracy_error(metrics[PAIR_ACCURACY], len(self._judge))
        metrics, errors = self._of_chief(metrics, errors)
        self._end_if_forgetting(metrics, notes)
        line = {"step": step}
        if len(self._phases) > 1:
            line["phase"] = number + 1
        self._best.keep_if_best(line, self._chosen_by(metrics), notes, errors=errors)
        return metrics

    def _chosen_by(self, metrics: dict[str, float]) -> dict[str, float]:
        """Return the metrics that the best model is chosen by, and told with.

        Within the standard error of the accuracy on pairs, the loss decides.
        """
        metric = self._config.selection_metric
        chosen_by = {
            name: metrics[name] for name in dict.fromkeys((metric, MLM_LOSS)) if name in metrics
        }
        if metric == PAIR_ACCURACY and MLM_LOSS in metrics:
            chosen_by["loss"] = metrics[MLM_LOSS]
        return chosen_by

    def _evaluate(self, phase: int) -> dict[str, float]:
        try:
            return self._evaluations[phase].run()
        except (tf.errors.DataLossError, tf.errors.InvalidArgumentError) as error:
            data = self._phases[phase].data
            raise find_damage(data.paths("eval"), data) or error from None

    def _entropy(self, phase: int) -> float:
        """Return the loss of a model that only knows token frequencies, on the same records."""
        if phase not in self._entropies:
            self._entropies[phase] = unigram_entropy(self._datasets[phase]())
        return self._entropies[phase]


def _change_of(loss: str) -> str:
    """Return the name of the metric that tells how a loss on a further set has changed."""
    return f"{loss}_change"
