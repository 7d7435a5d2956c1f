"""The common keys of `finetune`, to which each task adds its own, and those of `label-errors`."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, NamedTuple, Self

from bert_tf.base.errors import ConfigError
from bert_tf.config.registries import REGISTRIES
from bert_tf.config.section import (
    BatchSize,
    Fraction,
    FractionBelowOne,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFraction,
    PositiveInt,
    Section,
    advanced,
    build_section,
    chosen_option,
    option,
    optional,
)
from bert_tf.config.sections.loop import LoopSection
from bert_tf.config.sections.tables import TableSection, min_ceiling_option
from bert_tf.config.values import Bounds

# Grid for the small BERTs (README of google-research/bert). The README trains for 4 epochs; the
# grid does not set them.
_PUBLISHED = {
    "batch_size": ("8", "16", "32", "64", "128"),
    "learning_rate": ("3e-4", "1e-4", "5e-5", "3e-5"),
}
PUBLISHED = "published"
# The part of a text that is read if it is longer than a sequence.
HEAD = "head"
HEAD_TAIL = "head-tail"
WINDOWS = "windows"
LONG_TEXTS = (HEAD, HEAD_TAIL, WINDOWS)
_ROWS = "the number of rows"
# Keys that a grid may not vary.
_SAME_IN_A_SERIES = (
    "task",
    "train",
    "eval",
    "eval_fraction",
    "init",
    "output",
    "best_metric",
    "seed",
    "seeds",
    "grid",
    "strategy",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Teaching:
    """Distillation from the predictions of a teacher (Hinton et al. 2015).

    Attributes:
        teacher: path of the teacher.
        unlabeled: rows without labels to learn from; None for none.
        weight: fraction of the loss that is the distance to the teacher's predictions.
        temperature: divides the logits of both; 1 for tasks whose outputs are not softened.
    """

    teacher: str
    unlabeled: str | None
    weight: float
    temperature: float


class Recipe(NamedTuple):
    """How long and how fast to train."""

    epochs: float
    batch_size: int
    learning_rate: float


def parse_grid(text: str) -> list[dict[str, str]]:
    """Return every combination of a grid's values, as text by key; the last key varies fastest.

    Args:
        text: `key=value,value` for each key, separated by spaces; `published` stands for the grid
            of the small BERTs, whose values those of the text replace. An empty text has one empty
            combination.

    Raises:
        ValueError: the text is something else; the message is for the user.
    """
    parts = text.split()
    given: dict[str, tuple[str, ...]] = {}
    for part in parts:
        if part == PUBLISHED:
            continue
        key, equals, listed = part.partition("=")
        key = key.replace("-", "_")
        candidates = tuple(listed.split(","))
        if not key or not equals or not all(candidates):
            raise ValueError(f"expected {PUBLISHED} or key=value,value, got {part!r}")
        if len(set(candidates)) < len(candidates):
            raise ValueError(f"{part!r} has a value twice")
        if key in given:
            raise ValueError(f"{key} is given twice; list its values with commas")
        given[key] = candidates
    values = {**_PUBLISHED, **given} if PUBLISHED in parts else given
    return [
        dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())
    ]


def _length_option(default: str) -> Any:
    return option(f"maximum tokens per sequence, including [CLS] and [SEP] (default: {default})", 0)


def _best_metric_option(metrics: str, default: str) -> Any:
    return optional(
        "metric on the evaluation rows that selects the epoch saved in best/: "
        f"{metrics} or loss (default: {default})"
    )


def names_in(values: tuple[str, ...]) -> tuple[str, ...]:
    """Split names that are given in one text with commas."""
    if len(values) != 1:
        return values
    names = (part.strip() for part in values[0].split(","))
    return tuple(name for name in names if name)


def repeated_names(key: str, names: tuple[str, ...]) -> list[str]:
    """Return the fault of a name that is given twice; [] if there is none."""
    twice = next((name for name in names if names.count(name) > 1), None)
    return [] if twice is None else [f"{key}: {twice!r} is given twice; give it once"]


class FinetuneConfig(TableSection, LoopSection, section_name="finetune"):
    """Fine-tunes a model for a task on labeled rows.

    A task's section declares its metrics (the first chooses the best epoch), those that are logged
    (by default the first three), and the default length of its sequences; the help of
    `max_seq_length` and `best_metric` follows from these.
    """

    metrics: ClassVar[tuple[str, ...]] = ()
    headline_metrics: ClassVar[tuple[str, ...]] = ()
    default_sequence_length: ClassVar[int] = 128

    def __init_subclass__(cls, section_name: str = "") -> None:
        if "metrics" in vars(cls):
            length = _length_option(f"{cls.default_sequence_length} for this task")
            best = _best_metric_option(", ".join(cls.metrics), f"{cls.metrics[0]} for this task")
            keys = {"max_seq_length": (NonNegativeInt, length), "best_metric": (str | None, best)}
            for name in keys.keys() - vars(cls).keys():
                kind, described = keys[name]
                cls.__annotations__[name] = kind
                setattr(cls, name, described)
        super().__init_subclass__(section_name)

    task: str = option("task to fine-tune for", positional=True)
    train: str = option("training rows: CSV, TSV, JSONL or Parquet", reads="table")
    eval: str | None = optional("evaluation rows, in the same formats", common=True, reads="table")
    eval_fraction: FractionBelowOne = option(
        "without --eval, fraction of the training rows held out for evaluation, selected by a "
        "hash of their texts (0: none)",
        0.1,
    )
    init: str = option(
        "model directory, run directory or HuggingFace folder to start from", reads="model"
    )
    max_train_rows: NonNegativeInt = advanced("number of first rows to train on (0: all)", 0)
    max_seq_length: NonNegativeInt = _length_option("set by the task")
    epochs: Annotated[float, Bounds(maximum=1_000_000.0, above=0.0)] | None = chosen_option(
        "passes over the training rows", by=_ROWS, former_default=3.0
    )
    batch_size: BatchSize | None = chosen_option(
        "rows per step, across all replicas", by=_ROWS, former_default=32
    )
    eval_batch_size: BatchSize = option(
        "maximum rows per evaluation batch", 64, affects_output=False
    )
    best_metric: str | None = _best_metric_option("a metric of the task,", "set by the task")
    min_ceiling: Fraction = min_ceiling_option()
    learning_rate: PositiveFraction | None = chosen_option(
        "peak learning rate", by=f"{_ROWS} and the width of the model", former_default=5e-5
    )
    early_stop_loss: NonNegativeFloat | None = chosen_option(
        "stop when the evaluation loss exceeds its lowest so far by this factor (0: never)",
        by=f"{_ROWS}; 0 if epochs or early_stop_evals is given",
        former_default=0.0,
        advanced=True,
    )
    dry_run: bool = option(
        "show rows, steps, time and, with --price-per-hour or --watts, costs, without training",
        False,
    )
    seeds: Annotated[int, Bounds(1, 1000)] = option(
        "number of runs with consecutive seeds, starting at `seed`; the best model is kept", 1
    )
    grid: str | None = optional(
        "train with every combination of values: 'learning_rate=3e-5,5e-5 batch_size=16,32', or "
        "'published' for the grid of the small BERTs, which such values restrict"
    )
    freeze_layers: NonNegativeInt = option(
        "number of encoder layers to freeze, from the bottom, together with the embeddings (0: "
        "none)",
        0,
    )
    warmup_proportion: Fraction = option("fraction of the steps for warmup", 0.1)
    gradient_accumulation_steps: PositiveInt = advanced(
        "micro-batches per batch, to save memory", 1
    )

    def faults(self) -> Iterator[str]:
        if self.early_stop_evals and not self.evaluates:
            yield (
                "early_stop_evals: needs rows to evaluate on; give --eval or an --eval-fraction "
                "above 0, or set it to 0"
            )
        if self.early_stop_loss is not None and 0 < self.early_stop_loss <= 1:
            yield (
                f"early_stop_loss: is {self.early_stop_loss:g}, but a loss exceeds its lowest by a "
                "factor above 1; give 2, or 0 for no early stop"
            )
        elif self.early_stop_loss and not self.evaluates:
            yield (
                "early_stop_loss: needs rows to evaluate on; give --eval or an --eval-fraction "
                "above 0, or set it to 0"
            )
        known = (*self.metrics, "loss")
        if self.best_metric not in (None, *known):
            yield (
                f"best_metric: {self.best_metric!r} is not a metric of {self.task}; choose one of "
                f"{', '.join(known)}"
            )
        elif self.best_metric and not self.evaluates:
            yield (
                "best_metric: needs rows to evaluate on; give --eval or an --eval-fraction above "
                "0, or leave it out"
            )
        if self.is_series:
            yield from self._faults_of_series()
        elif self.batch_size and self.gradient_accumulation_steps > self.batch_size:
            yield (
                f"gradient_accumulation_steps: is {self.gradient_accumulation_steps}, more than "
                f"the {self.batch_size} rows of a batch; use at most {self.batch_size}"
            )

    def runs(self) -> list[tuple[dict[str, Any], Self]]:
        """Return (grid settings, config) of every combination and seed; raise ConfigError."""
        values = {**self.as_dict(), "seeds": 1, "grid": None}
        settings_of_runs = []
        for combination in parse_grid(self.grid or ""):
            first = build_section(type(self), {**values, **combination})
            settings = {key: getattr(first, key) for key in combination}
            for seed in range(self.seed, self.seed + self.seeds):
                settings_of_runs.append((settings, dataclasses.replace(first, seed=seed)))
        return settings_of_runs

    def _faults_of_series(self) -> Iterator[str]:
        given = "seeds" if self.seeds > 1 else "grid"
        if self.strategy == "multi-worker":
            yield f"{given}: a series of runs is trained by a single worker; use another strategy"
            return
        if not self.evaluates:
            yield (
                f"{given}: comparing runs needs rows to evaluate on; give --eval or an "
                "--eval-fraction above 0"
            )
            return
        try:
            for key in parse_grid(self.grid or "")[0]:
                if key in _SAME_IN_A_SERIES:
                    yield f"grid: {key} cannot vary; make a separate run for each value"
                    return
            self.runs()
        except ValueError as error:
            yield f"grid: {error}"
        except ConfigError as error:
            yield from (f"grid: {fault}" for fault in error.faults)

    @property
    def recipe(self) -> Recipe:
        """Epochs, batch size and learning rate.

        Raises:
            ValueError: one is not chosen yet.
        """
        if self.epochs is None or self.batch_size is None or self.learning_rate is None:
            raise ValueError("epochs, batch_size or learning_rate are not chosen yet")
        return Recipe(self.epochs, self.batch_size, self.learning_rate)

    @property
    def compares_rows(self) -> bool:
        """Whether the loss compares rows with each other.

        Such a batch cannot be split into micro-batches.
        """
        return False

    @property
    def more_inputs(self) -> dict[str, str | None]:
        """Further inputs than train, eval and init, by key."""
        return {}

    @property
    def teaching(self) -> Teaching | None:
        """Distillation from a teacher, beside the labels; None without one."""
        return None

    @property
    def is_series(self) -> bool:
        return self.seeds > 1 or self.grid is not None

    @property
    def evaluates(self) -> bool:
        return self.eval is not None or self.eval_fraction > 0

    @property
    def remedy_for_long_texts(self) -> str:
        return "raise --max-seq-length"

    @property
    def sequence_length(self) -> int:
        return self.max_seq_length or self.default_sequence_length

    @property
    def shown_metrics(self) -> tuple[str, ...]:
        """The metrics on the console: loss, selection metric, headlines."""
        headlines = self.headline_metrics or self.metrics[:3]
        return tuple(dict.fromkeys(("loss", self.selection_metric, *headlines)))

    @property
    def selection_metric(self) -> str:
        """The metric that selects the best epoch's model."""
        return self.best_metric or self.metrics[0]


# Keys of `finetune` that `label-errors` does not read: its output is a folder of its own, and it
# keeps no model and has no rows to evaluate on.
_NOT_OF_LABEL_ERRORS = (
    "output",
    "eval",
    "eval_fraction",
    "report_to",
    "min_ceiling",
    "seeds",
    "grid",
    "best_metric",
    "early_stop_evals",
    "early_stop_loss",
)


class LabelErrorsSection(Section, section_name="label_errors"):
    """Keys of `label-errors`; the first base, so that they override those of FinetuneConfig."""

    # `init` writes the section of `finetune`, which fits the same rows.
    read_instead: ClassVar[tuple[str, tuple[str, ...]] | None] = ("finetune", _NOT_OF_LABEL_ERRORS)

    eval: str | None = advanced("unused: all rows are checked", None, affects_output=False)
    eval_fraction: FractionBelowOne = advanced("unused, as eval", 0.0, affects_output=False)
    dry_run: bool = advanced("unused: there is none", False, affects_output=False)
    report_to: tuple[str, ...] = advanced(
        "unused: no model is kept", (), choices=REGISTRIES.trackers
    )
    min_ceiling: Fraction = advanced(
        "as for finetune, but 0: rows that contradict each other are among those to find",
        0.0,
        affects_output=False,
    )
    folds: Annotated[int, Bounds(2, 100)] = option(
        "cross-validation folds; each fold is predicted by a model fine-tuned on the others", 5
    )

    def faults(self) -> Iterator[str]:
        for key in ("eval", "eval_fraction"):
            if getattr(self, key):
                yield f"{key}: is not used, since all rows of --train are checked; leave it out"
        if self.dry_run:
            yield "dry_run: label-errors has none; leave it out"
        if self.report_to:
            yield "report_to: is not used, since no model is kept; leave it out, or use finetune"


class LabelErrorsConfig(LabelErrorsSection, FinetuneConfig):
    """Finds rows that are likely mislabeled, by predictions of models fine-tuned on other rows."""
