"""The model to try, an export or a run's, and its predictions of a row."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bert_tf.base.console import Console
from bert_tf.base.errors import Fault, UsageError, missing_folder_error
from bert_tf.engines.predictor import Predictor, load
from bert_tf.engines.registry import is_exported
from bert_tf.serving.signatures import LOST_TOKENS
from bert_tf.tasks import PRETRAINED_TASKS
from bert_tf.tasks.base.prediction_rows import RowProbabilities, prediction_rows
from pipeline.outputs.job_folder import finished_model

MOST_CHARACTERS = 20_000  # of an input: about 5,000 English tokens, a second's work for BERT-base


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tried:
    """A row and its predictions.

    Attributes:
        inputs: a text or a list of texts by input name.
        predictions: as `score` writes them in JSON lines.
        ranking: the choices by probability, the most likely first; None without a choice.
        lost_tokens: number of tokens that were cut off.
    """

    inputs: Mapping[str, str | list[str]]
    predictions: Mapping[str, Any]
    ranking: list[tuple[str, float]] | None
    lost_tokens: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class TriedModel:
    """A model that is open.

    Attributes:
        name: its path, as the user gave it.
        predictor: the model with its task.
    """

    name: str
    predictor: Predictor

    def predict(self, texts: Mapping[str, str]) -> Tried:
        """Predict a row.

        Args:
            texts: by input name; a list is typed as a text per line.

        Returns:
            The row and its predictions.

        Raises:
            UsageError: an input is empty or too long, or the task cannot predict such a row.
            InputError: a score is not finite.
        """
        declared = self.predictor.declared
        optional = declared.optional_inputs(self.predictor.task)
        values = {
            name: _value(
                name,
                texts.get(name, ""),
                is_list=not isinstance(column, str),
                may_be_empty=name in optional,
            )
            for name, column in self.predictor.columns.items()
        }
        fault = declared.row_fault and declared.row_fault(values)
        if fault:
            raise _unpredictable(fault)
        inputs = {name: [value] for name, value in values.items()}
        engine = self.predictor.engine
        assert engine is not None  # only predictors for `check_row` have none
        predicted = engine.predict(inputs)
        if declared.outcome_faults is not None:
            for fault in declared.outcome_faults(predicted).values():
                raise _unpredictable(fault)
        (predictions,) = prediction_rows(declared.predictions, predicted)
        return Tried(
            inputs=values,
            predictions=predictions,
            ranking=self._ranking(predicted, inputs),
            lost_tokens=int(predicted.get(LOST_TOKENS, [0])[0]),
        )

    def _ranking(
        self, predicted: Mapping[str, Any], inputs: Mapping[str, list[Any]]
    ) -> list[tuple[str, float]] | None:
        """Return the choices of a row with their probabilities, the most likely first."""
        declared = self.predictor.declared
        if declared.probabilities is None:
            return None
        probabilities = RowProbabilities.of(declared, self.predictor.task, "all", self.name)
        assert probabilities is not None
        (of_row,) = probabilities.values(predicted, inputs)
        names = of_row
        if declared.probabilities.list_input is not None:
            names = inputs[declared.probabilities.list_input][0]
        scores = list(of_row.values()) if isinstance(of_row, dict) else of_row
        return sorted(zip(names, scores, strict=True), key=lambda named: -named[1])


@contextmanager
def opened_model(path: str, console: Console) -> Iterator[TriedModel]:
    """Open an exported folder, a run of `finetune` or a fine-tuned model directory.

    The model of a run is exported to a temporary folder first, so that it predicts the same as
    `score`.

    Args:
        path: of the model.
        console: receives a note on the export.

    Yields:
        The model, until the block ends.

    Raises:
        UsageError: there is no model that is fine-tuned for a task.
        InputError: it is damaged.
    """
    model = finished_model(path, console)
    folder = Path(model)
    if not folder.is_dir():
        raise missing_folder_error(folder, "model directory")
    if is_exported(folder):
        yield TriedModel(name=path, predictor=load(folder))
        return
    # Loads TensorFlow, which an exported model may not need.
    from bert_tf.export.loading import load_trained_model
    from bert_tf.export.registry import FORMATS
    from bert_tf.tasks.registry import with_task_of_weights
    from bert_tf.weights.model_directory import read_model_directory

    directory = with_task_of_weights(read_model_directory(folder), console)
    if directory.task is None:
        raise UsageError(
            f"{path}: is not fine-tuned for a task; try the output of bert-pipeline finetune "
            f"--init {path}, or of bert-pipeline export --run {path} --task "
            f"{' or '.join(PRETRAINED_TASKS)}"
        )
    console.info(f"{directory.path}: not an export; exporting it to a temporary folder first")
    with TemporaryDirectory(prefix="bert-pipeline-try-") as place:
        default = next(iter(FORMATS.values())).load()
        default.write(load_trained_model(directory), Path(place), console)
        yield TriedModel(name=path, predictor=load(place))


def _unpredictable(fault: Fault) -> UsageError:
    reason, detail = fault
    return UsageError(f"{reason}: {detail}" if detail else reason)


def _value(name: str, text: str, *, is_list: bool, may_be_empty: bool = False) -> str | list[str]:
    """Check the text typed for an input, and split it into lines for a list."""
    name = name.replace("_", " ")
    if not text.strip():
        if may_be_empty:
            return ""
        raise UsageError(f"{name} is empty; type a text")
    if len(text) > MOST_CHARACTERS:
        raise UsageError(
            f"{name} has {len(text):,} characters, more than the limit of {MOST_CHARACTERS:,}; "
            "bert-pipeline score takes longer ones in files"
        )
    if not is_list:
        return text
    return [line.strip() for line in text.splitlines() if line.strip()]
