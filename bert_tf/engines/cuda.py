"""The engine for NVIDIA GPUs: XLA compiles the model, and texts are tokenized on the host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.base.errors import InputError
from bert_tf.base.gpus import nvidia_gpus, unusable_gpu
from bert_tf.config.registries import BFLOAT16, FLOAT16, FLOAT32
from bert_tf.data.rows.encoded_rows import COMPILED_TIMES
from bert_tf.engines.registry import EngineEntry
from bert_tf.engines.token_ids import TokenIdsEngine
from bert_tf.tasks.base.served_task import ServedTask
from bert_tf.tasks.registry import served_task_from_settings
from bert_tf.training.arithmetic import inference_form, keep_float32_exact
from bert_tf.weights.model_directory import load_all_weights, read_model_directory
from bert_tf.xla.forward import compiled

_POLICIES = {FLOAT32: "float32", BFLOAT16: "mixed_bfloat16", FLOAT16: "mixed_float16"}


class CudaEngine(TokenIdsEngine):
    """Pads batches to at most eight shapes, each of which XLA compiles once."""

    has_few_shapes = True
    times = COMPILED_TIMES


def load(folder: Path, *, threads: int | None, precision: str) -> CudaEngine:
    """Load a model from its weights; runs on any device, but is made for GPUs.

    Args:
        folder: the exported model.
        threads: not used.
        precision: FLOAT32, BFLOAT16 or FLOAT16.
    """
    if precision == FLOAT32:
        keep_float32_exact()
    directory = read_model_directory(folder)
    task = served_task_from_settings(directory.task, str(folder))
    model = task.build_model(directory.config, policy=_POLICIES[precision])
    load_all_weights(model, directory)

    forward = compiled_forward(task, model)

    def run(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        batch = {name: tf.constant(values, tf.int32) for name, values in inputs.items()}
        try:
            return {name: values.numpy() for name, values in forward(batch).items()}
        except tf.errors.InvalidArgumentError as error:
            first_line = str(error).partition("\n")[0]
            raise InputError(f"{folder}: {first_line}; export the model again") from None

    return CudaEngine(folder, run)


def compiled_forward(task: ServedTask, model: Any) -> Any:
    """Return a compiled function from batches of token ids to float32 outputs, both by name."""

    def forward(batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        outputs = task.sequence_outputs(model, batch)
        return {name: tf.cast(values, tf.float32) for name, values in outputs.items()}

    return compiled(forward, inference_form())


def model_fault(folder: Path, entry: EngineEntry) -> str | None:
    """Return why the engine cannot be used here; None if it can. Quick without a GPU."""
    if not nvidia_gpus():
        return "needs an NVIDIA GPU, and there is none"
    return unusable_gpu()
