"""Writes XLA's programs of steps and scoring as for a GPU; see gpu_exported_step.py.

A variant is three files: `NAME.hlo`, XLA's program before it is optimized; `NAME.npz`, its small
inputs; `NAME.json`, facts about it. Large inputs, which are weights, are drawn anew where the
program runs.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from accelerator_audit import CLASSIFICATION, finetuning_step

from bert_tf.config.bert import BertConfig, sized_config
from bert_tf.pretraining.step_trial import StepShape, full_batch, training_step_of
from bert_tf.serving.signatures import IDS_INPUTS
from bert_tf.tasks.registry import task_from_settings
from bert_tf.training.arithmetic import Arithmetic, PrecisionPolicy
from bert_tf.xla.forward import XlaForward, compiled
from bert_tf.xla.step_programs import STEPS_PER_PROGRAM

POLICY = "mixed_bfloat16"
# By name, rates of dropout of attention and of hidden states, and whether cuDNN is called.
FORMS = {
    "fused": (0.0, 0.1, True),
    "plain": (0.1, 0.1, False),
    "plain, attention dropout 0": (0.0, 0.1, False),
    "fused, no dropout": (0.0, 0.0, True),
}
_LARGE = 65_536  # bytes from which weights are drawn anew instead of stored
# Of XLA's text: an output and the parameter whose memory it takes.
_ALIAS = re.compile(r"\{(\d+)\}: \((\d+), \{\}")


def works(tokens: int, *, lengths: Sequence[int], task_length: int) -> list[dict[str, Any]]:
    """Describe the four kinds of work, as gpu_throughput_pytorch.py reads them."""
    kinds = [*(("pretraining", length) for length in lengths)]
    kinds += [("finetuning", task_length), ("scoring", task_length)]
    return [
        {
            "name": f"{kind} {length}",
            "kind": kind,
            "length": length,
            "rows": max(1, tokens // length),
            "predictions": max(1, length * 15 // 100) if kind == "pretraining" else 0,
        }
        for kind, length in kinds
    ]


def export_variants(
    folder: Path,
    config_of: Any,
    work: list[dict[str, Any]],
    *,
    size: str,
    layers: Sequence[int | None],
    forms: Sequence[str],
) -> None:
    """Write the variants of all kinds of work.

    Args:
        config_of: function from fields of a BERT config to the config.
        work: see `works`.
        layers: numbers of layers; None for that of the size.
        forms: names of `FORMS`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for each, form, count in itertools.product(work, forms, layers):
        attention_dropout, hidden_dropout, is_fused = FORMS[form]
        changes = {} if count is None else {"num_hidden_layers": count}
        config = config_of(
            attention_probs_dropout_prob=attention_dropout,
            hidden_dropout_prob=hidden_dropout,
            **changes,
        )
        shape = StepShape(rows=each["rows"], length=each["length"], predictions=each["predictions"])
        function, arguments, steps = _MAKERS[each["kind"]](config, shape, is_fused)
        name = f"{size} {each['name']} {form}" + (f" {count} layers" if count else "")
        facts = {
            "size": size,
            "work": each["name"],
            "form": form,
            "layers": config.num_hidden_layers,
            "rows": shape.rows,
            "steps": steps,
        }
        _write(folder / name, function, arguments, facts)
        print(f"{name}: exported", flush=True)


def _pretraining(config: BertConfig, shape: StepShape, is_fused: bool) -> Any:
    """Return a program of several steps, as `train` runs it."""
    step = training_step_of(config, _arithmetic(is_fused))
    batch = full_batch(shape, config.vocab_size)
    stacked = {
        name: tf.stack([tf.constant(values)] * STEPS_PER_PROGRAM) for name, values in batch.items()
    }
    rates = tf.fill([STEPS_PER_PROGRAM], 1e-4)
    arguments = (stacked, tf.constant(STEPS_PER_PROGRAM), tf.constant(0), rates, 1)
    programs = step._programs
    assert programs is not None  # the arithmetic has several steps in one program
    return programs._program, arguments, STEPS_PER_PROGRAM


def _finetuning(config: BertConfig, shape: StepShape, is_fused: bool) -> Any:
    """Return a step of a classifier."""
    step, batch = finetuning_step(config, _arithmetic(is_fused), shape)
    rows = {name: tf.constant(values) for name, values in batch.items()}
    return step.compiled, (rows, tf.constant(0), tf.constant(1e-5), 1), 1


def _scoring(config: BertConfig, shape: StepShape, is_fused: bool) -> Any:
    """Return a batch of the engine `cuda`."""
    task = task_from_settings(CLASSIFICATION, "benchmark")
    model = task.build_model(config, policy=POLICY)
    model.build_weights()
    batch = full_batch(shape, config.vocab_size)

    def forward(batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        outputs = task.sequence_outputs(model, batch)
        return {name: tf.cast(values, tf.float32) for name, values in outputs.items()}

    function = compiled(forward, XlaForward(fuses_attention=is_fused))
    return function, ({name: tf.constant(batch[name]) for name in IDS_INPUTS},), 1


_MAKERS = {"pretraining": _pretraining, "finetuning": _finetuning, "scoring": _scoring}


def _arithmetic(is_fused: bool) -> Arithmetic:
    return Arithmetic(
        precision=PrecisionPolicy(POLICY, use_xla=True),
        cpu_kernels=False,
        fuses_attention=is_fused,
    )


def _write(path: Path, function: Any, arguments: tuple[Any, ...], facts: dict[str, Any]) -> None:
    programs = function.experimental_get_compiler_ir(*arguments)
    captured = function.get_concrete_function(*arguments).captured_inputs
    values = [each.numpy() for each in tf.nest.flatten(arguments) if tf.is_tensor(each)]
    values += list(_values_of(captured))
    path.with_name(f"{path.name}.hlo").write_bytes(programs(stage="hlo_serialized"))
    stored, drawn = {}, {}
    for number, value in enumerate(values):
        if value.nbytes < _LARGE or not np.issubdtype(value.dtype, np.floating):
            stored[str(number)] = value
        else:
            drawn[str(number)] = {"shape": value.shape, "deviation": float(value.std())}
    np.savez_compressed(path.with_name(f"{path.name}.npz"), **stored)
    text = programs(stage="hlo")
    fed_back = dict(_ALIAS.findall(text[: text.index("\n")]))
    facts |= {"inputs": len(values), "drawn": drawn, "fed_back": fed_back}
    path.with_name(f"{path.name}.json").write_text(json.dumps(facts))


def _values_of(handles: list[Any]) -> Iterator[np.ndarray]:
    """Read the variables behind resource handles."""
    for handle in handles:
        (kind,) = handle._handle_data.shape_and_type
        yield tf.raw_ops.ReadVariableOp(resource=handle, dtype=kind.dtype).numpy()


def sized(size: str, vocab_size: int) -> Any:
    """Return a function from fields to the config of a size."""
    return lambda **fields: sized_config(size, vocab_size, **fields)
