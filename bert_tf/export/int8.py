"""A graph of 8-bit integers beside an exported one: calibrated, and compared with it."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bert_tf.base.console import Advance, Console
from bert_tf.base.errors import InputError, UsageError, check_packages
from bert_tf.config.registries import INT8
from bert_tf.data.tables.file_rows import FileRows
from bert_tf.engines.registry import ENGINES, EngineEntry
from bert_tf.export.registry import FormatEntry
from bert_tf.tasks.base.task import Task
from bert_tf.tasks.registry import host_task_from_settings, task_from_settings
from bert_tf.training.best_model import rank
from bert_tf.weights.model_directory import ModelDirectory

if TYPE_CHECKING:
    from bert_tf.engines.token_ids import TokenIdsEngine
    from bert_tf.export.loading import QuantizableFormat

CALIBRATION_ROWS = 300


@dataclasses.dataclass(frozen=True, kw_only=True)
class Int8Comparison:
    """A metric of the float32 and the int8 graph.

    Attributes:
        metric: name of the metric.
        float32, int8: its values.
        rows: number of rows it was measured on.
        calibration_rows: number of rows that the graph was calibrated with.
        source: file name of the rows.
    """

    metric: str
    float32: float
    int8: float
    rows: int
    calibration_rows: int
    source: str

    @property
    def drop(self) -> float:
        """The amount by which int8 is worse; negative if it is better."""
        before, _ = rank({self.metric: self.float32}, self.metric)
        after, _ = rank({self.metric: self.int8}, self.metric)
        return before - after

    def check(self, max_drop: float) -> None:
        """Raise InputError if the metric falls by more than `max_drop`."""
        if not self.drop <= max_drop:  # also if either is not a number
            raise InputError(
                f"--precision int8: {self}, more than --max-metric-drop {max_drop:g}; nothing was "
                "written (calibrate with rows like those to score, or export without it)"
            )

    def __str__(self) -> str:
        return (
            f"{self.metric} on the {self.rows:,} rows of {self.source} is {self.float32:.4f} in "
            f"float32 and {self.int8:.4f} in int8"
        )


def check_quantizable(entry: FormatEntry, directory: ModelDirectory) -> None:
    """Check that a model can have an int8 graph here.

    Raises:
        UsageError: it was not fine-tuned, only TensorFlow runs its task, or a package is missing.
    """
    task_from_settings(directory.task, str(directory.path))
    if host_task_from_settings(directory.task, str(directory.path)) is None:
        raise UsageError(
            f"--precision int8: models of {(directory.task or {})['task']} are run by the engine "
            "tensorflow only, which has no int8; leave it out"
        )
    for package in filter(None, (entry.quantizer, *int8_engine(entry).packages)):
        check_packages("--precision int8", [package], extra=package)


def add_int8_graph(
    entry: FormatEntry,
    folder: Path,
    task: Task,
    rows: FileRows,
    *,
    metric: str | None,
    console: Console,
) -> Int8Comparison:
    """Write an int8 graph beside the float32 one of a folder and measure both.

    Args:
        rows: to measure on; `CALIBRATION_ROWS` of them, from all over the file, calibrate it.
        metric: the metric to compare; the task's first one instead of None, or of a metric that
            engines do not measure.
    """
    engine = int8_engine(entry)
    written = cast("QuantizableFormat", entry.load())
    exact = cast("TokenIdsEngine", engine.load(folder, is_checked=True))
    texts = task.texts(rows)
    count = len(next(iter(texts.values())))
    chosen = np.unique(np.linspace(0, count - 1, CALIBRATION_ROWS).round().astype(np.int64))
    calibration = {name: [column[row] for row in chosen] for name, column in texts.items()}
    console.progress(Advance(f"calibrating int8 with {len(chosen)} of {count:,} rows"))
    written.write_int8(folder, exact.graph_inputs(calibration))
    quantized = engine.load(folder, is_checked=True, precision=INT8)
    console.progress(Advance(f"measuring float32 and int8 on {count:,} rows"))
    before = task.measure(rows, exact.predict(texts)).metrics
    after = task.measure(rows, quantized.predict(texts)).metrics
    if metric not in before:
        metric = task.declaration.options.metrics[0]
    return Int8Comparison(
        metric=metric,
        float32=before[metric],
        int8=after[metric],
        rows=count,
        calibration_rows=len(chosen),
        source=Path(rows.source).name,
    )


def int8_engine(entry: FormatEntry) -> EngineEntry:
    """Return the engine that runs the 8-bit graph of a format."""
    return next(engine for engine in ENGINES.values() if engine.model_file == entry.model_file)


def quantized_openvino(model: Any, batches: Sequence[dict[str, np.ndarray]]) -> Any:
    """Return a copy of an `openvino.Model` with matrix products of 8-bit integers, by NNCF.

    The batches determine the scales, so that scores do not depend on other rows. Outliers of
    activations are moved to the weights (SmoothQuant, Xiao et al. 2023). Weights use half of their
    range, because processors without VNNI would overflow.

    Args:
        model: the float32 model.
        batches: inputs of the graph, for calibration.
    """
    os.environ.setdefault("NNCF_CI", "1")  # else it reports its use over the network
    import nncf

    nncf.set_log_level(logging.ERROR)
    with contextlib.redirect_stdout(io.StringIO()):  # progress bars
        return nncf.quantize(
            model,
            nncf.Dataset(batches),
            preset=nncf.QuantizationPreset.MIXED,
            target_device=nncf.TargetDevice.CPU,
            subset_size=len(batches),
            model_type=nncf.ModelType.TRANSFORMER,
            advanced_parameters=nncf.AdvancedQuantizationParameters(
                overflow_fix=nncf.OverflowFix.ENABLE
            ),
        )


def write_quantized_onnx(
    source: Path, target: Path, batches: Sequence[dict[str, np.ndarray]]
) -> None:
    """Write an ONNX graph with matrix products of 8-bit integers, by onnxruntime.

    Scales are determined like in `quantized_openvino`; weights have one per column.

    Args:
        source: path of the float32 graph.
        target: path of the new graph.
        batches: inputs of the graph, for calibration.
    """
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    before = logging.root.manager.disable
    logging.disable(logging.WARNING)  # advice to preprocess, for operations that ours do not have
    try:
        quantize_static(
            source,
            target,
            _CalibrationBatches(batches),
            quant_format=QuantFormat.QDQ,
            op_types_to_quantize=["MatMul"],
            per_channel=True,
            reduce_range=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )
    finally:
        logging.disable(before)


class _CalibrationBatches:
    """A `CalibrationDataReader`; onnxruntime recognizes one by its `get_next`."""

    def __init__(self, batches: Sequence[dict[str, np.ndarray]]):
        self._left = iter(batches)

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._left, None)
