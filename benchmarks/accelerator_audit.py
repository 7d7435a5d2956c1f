"""Audits the programs of a GPU on any CPU: steps are traced and compiled as for a GPU.

    python benchmarks/accelerator_audit.py [--size base] [--layers 2] [--lengths 128 512]
    python benchmarks/accelerator_audit.py --size tiny --vocab-size 500 --lengths 16 --tokens 256

Prints for pretraining (128 and 512 tokens), fine-tuning, evaluation and scoring:

- operations outside XLA per step, or per program of several steps: each is a kernel to launch, or
  work of the host between kernels;
- operations among them for which the host waits for the GPU;
- the ten largest results of the program that XLA makes, without weights and moments. It is the one
  for CPUs, read as a GPU would run it: products of 16 bits stay that (CPUs convert to float32), and
  values that only a sum reads are computed inside of it. GPUs fuse more: these are upper bounds;
- passes over memory of a layer (kernels) and the bytes that they move, by the same program;
  gpu_program_audit.py has the program that XLA makes for an H100;
- bytes that the update of a weight reads and writes, by the same program;
- shapes of the batches of an epoch, each of which XLA compiles once.
"""

from __future__ import annotations

import argparse
import collections
import math
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf
from xla_programs import UNMADE, Instruction, instructions_of, moved_bytes

from bert_tf.base.arrays import offsets_of
from bert_tf.base.console import Console
from bert_tf.config.bert import SIZES, BertConfig, sized_config
from bert_tf.config.section import build_section
from bert_tf.config.sections.pretraining import TrainConfig
from bert_tf.data.rows.encoded_rows import COMPILED_LENGTHS, Batching, EncodedRows
from bert_tf.engines.cuda import compiled_forward
from bert_tf.pretraining.step_trial import StepShape, full_batch, training_step_of
from bert_tf.serving.signatures import IDS_INPUTS
from bert_tf.tasks.base.task import FinetuningLoss
from bert_tf.tasks.base.task_data import ROW_WEIGHTS, TaskData
from bert_tf.tasks.registry import task_from_settings
from bert_tf.tasks.running.batches import FinetuningInputs, ForwardPass
from bert_tf.training.arithmetic import Arithmetic, PrecisionPolicy
from bert_tf.training.optimizers import make_optimizer
from bert_tf.training.step import TrainingStep
from bert_tf.xla.step_programs import STEPS_PER_PROGRAM

# They run no kernel: names of tensors, or inputs and outputs of functions.
_FREE = {"Const", "Identity", "IdentityN", "NoOp", "Placeholder", "_Arg", "_Retval"}
# Their result decides on the host about the next operation, or has a size known from data only.
_SYNCHRONIZING = {"Assert", "EagerPyFunc", "If", "Print", "PyFunc", "StringFormat", "Unique"}
_SYNCHRONIZING |= {"UniqueV2", "Where"}
_CALLS = ("PartitionedCall", "StatefulPartitionedCall")
_LOOPS = ("While", "StatelessWhile")


CLASSIFICATION = {
    "task": "classification",
    "labels": ["no", "yes"],
    "columns": {"text": "text", "text_pair": None, "label": "label"},
    "max_seq_length": 512,
}


def fuse_as_gpus() -> None:
    """Keep XLA from handing reductions to a library for CPUs, before it compiles anything."""
    flags = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = f"{flags} --xla_cpu_experimental_ynn_fusion_type=".strip()


def as_on_gpu(policy: str = "mixed_bfloat16") -> Arithmetic:
    precision = PrecisionPolicy(policy, use_xla=True)
    return Arithmetic(precision=precision, cpu_kernels=False)


def operations_of_step(
    step: TrainingStep, batch: dict[str, np.ndarray], *, has_one_shape: bool = True
) -> collections.Counter[str]:
    """Count operations by type: of a program of several steps if all batches have one shape.

    What XLA compiles together is one, called "XLA". Operations that are placed on the host are left
    out: they prepare the next batches while the GPU computes.
    """
    dataset = tf.data.Dataset.from_tensors(batch).repeat()
    if not has_one_shape:
        specs = {
            name: tf.TensorSpec([None] * values.ndim, values.dtype)
            for name, values in batch.items()
        }
        dataset = tf.data.Dataset.from_generator(lambda: iter([batch]), output_signature=specs)
    batches = iter(dataset)
    number = tf.constant(1)
    graph = step._run.get_concrete_function(batches, number, number, tf.zeros(128), 1).graph
    document = graph.as_graph_def()
    functions = {each.signature.name: each for each in document.library.function}
    (loop,) = (node for node in _nodes(document.node, functions) if node.op in _LOOPS)
    return operations_of(functions[loop.attr["body"].func.name].node_def, functions)


def operations_of(nodes: Any, functions: dict[str, Any]) -> collections.Counter[str]:
    names = (
        "XLA" if node.op in _CALLS else node.op
        for node in _nodes(nodes, functions)
        if node.op not in _FREE and "CPU" not in node.device
    )
    return collections.Counter(names)


def _nodes(nodes: Any, functions: dict[str, Any]) -> Iterator[Any]:
    """Yield nodes, and for calls of functions that XLA does not compile the nodes of these."""
    for node in nodes:
        called = functions[node.attr["f"].func.name] if node.op in _CALLS else None
        if called is not None and not called.attr["_XlaMustCompile"].b:
            yield from _nodes(called.node_def, functions)
        else:
            yield node


def program_of_step(step: TrainingStep, batch: dict[str, np.ndarray]) -> list[Instruction]:
    """XLA's program of a step: its outermost operations."""
    tensors = {name: tf.constant(values) for name, values in batch.items()}
    text = step.compiled.experimental_get_compiler_ir(
        tensors, tf.constant(0), tf.constant(1e-4), 1
    )("optimized_hlo")
    return instructions_of(text)


def largest(program: list[Instruction], count: int = 10) -> list[tuple[Instruction, int]]:
    """Print the largest results, without weights, and their number by shape and operation."""
    users: dict[str, list[Instruction]] = {}
    for each in program:
        for name in each.operands:
            users.setdefault(name, []).append(each)
    updated = _updates(program)
    made: dict[tuple[str, str], list[Instruction]] = {}
    for each in program:
        by = users.get(each.name, [])
        is_inside = each.operation == "fusion" and all("reduce" in user.name for user in by)
        if each.operation in UNMADE or each.name in updated or is_inside:
            continue
        if each.operation == "dot" or any(user.operation == "dot" for user in by):
            each = each._replace(shape=each.shape.replace("f32[", "bf16["))
        made.setdefault((each.shape, each.operation), []).append(each)
    kinds = [(alike[0], len(alike)) for alike in made.values()]
    return sorted(kinds, key=lambda kind: -kind[0].bytes)[:count]


def update_bytes(program: list[Instruction]) -> int:
    """Bytes read and written by the operations that make new weights and moments."""
    by_name = {each.name: each for each in program}
    total = 0
    for name in _updates(program):
        made = by_name[name]
        total += made.bytes + sum(by_name[each].bytes for each in made.operands)
    return total


def _updates(program: list[Instruction]) -> set[str]:
    """Names of the operations that make the results of the program."""
    by_name = {each.name: each for each in program}
    root = program[-1]
    found = set()
    for name in root.operands:
        made = by_name[name]
        while made.operation in ("get-tuple-element", "bitcast", "copy"):
            made = by_name[made.operands[0]]
        if made.operation not in UNMADE:
            found.add(made.name)
    return found


def audit_step(
    name: str, step: TrainingStep, batch: dict[str, np.ndarray], *, has_one_shape: bool
) -> None:
    weights = sum(math.prod(each.shape) for each in step.model.trainable_variables)
    counts = operations_of_step(step, batch, has_one_shape=has_one_shape)
    unit = f"{STEPS_PER_PROGRAM} steps" if has_one_shape else "step"
    waits = {kind: number for kind, number in counts.items() if kind in _SYNCHRONIZING}
    print(f"\n{name}: {counts.total()} operations outside XLA and calls of it per {unit}")
    print("  " + ", ".join(f"{number} {kind}" for kind, number in counts.most_common(12)))
    print(f"  the host waits for the GPU {sum(waits.values())} times per {unit} {waits or ''}")
    program = program_of_step(step, batch)
    print(f"  the update moves {update_bytes(program) / weights:.1f} bytes per weight")
    print_largest(program)


def print_layer(
    program: list[Instruction], deeper: BertConfig, batch: dict[str, np.ndarray]
) -> None:
    """Print by how much a program of one more layer launches and moves more."""
    kernels, moved = moved_bytes(program)
    more_kernels, more_moved = moved_bytes(
        program_of_step(training_step_of(deeper, as_on_gpu()), batch)
    )
    print(
        f"  a layer passes over memory {more_kernels - kernels} times and moves "
        f"{(more_moved - moved) / 1e6:,.0f} MB"
    )


def print_largest(program: list[Instruction]) -> None:
    for each, times in largest(program):
        shape = each.shape.partition("{")[0]
        print(f"  {each.bytes / 1e6:10,.1f} MB  {times:3} x {shape:32} {each.operation}")


def finetuning_step(
    config: BertConfig, arithmetic: Arithmetic, shape: StepShape
) -> tuple[TrainingStep, dict[str, np.ndarray]]:
    """Return a step of a classifier, and a batch."""
    task = task_from_settings(CLASSIFICATION, "audit")
    model = task.build_model(config, policy=arithmetic.precision.policy)
    model.build_weights()
    optimizer = make_optimizer(
        build_section(TrainConfig, {"data": "-", "output": "-", "size": "tiny"}),
        num_hidden_layers=config.num_hidden_layers,
    )
    optimizer.build(model.trainable_variables)
    step = TrainingStep(
        model=model,
        loss=FinetuningLoss(task),
        optimizer=optimizer,
        strategy=tf.distribute.get_strategy(),
        arithmetic=arithmetic,
    )
    batch = full_batch(shape, config.vocab_size)
    labels = {"label": batch["next_sentence_labels"], ROW_WEIGHTS: np.ones(shape.rows, np.float32)}
    return step, {**{name: batch[name] for name in IDS_INPUTS}, **labels}


def audit_scoring(config: BertConfig, shape: StepShape) -> None:
    """Print the largest results of a batch of the engine `cuda`; all of it is one call of XLA."""
    task = task_from_settings(CLASSIFICATION, "audit")
    model = task.build_model(config, policy="mixed_bfloat16")
    model.build_weights()
    batch = full_batch(shape, config.vocab_size)
    text = compiled_forward(task, model).experimental_get_compiler_ir(
        {name: tf.constant(batch[name]) for name in IDS_INPUTS}
    )("optimized_hlo")
    print(f"\nscoring, {shape.rows} x {shape.length}: 1 call of XLA per batch")
    print_largest(instructions_of(text))


def epoch_shapes(lengths: np.ndarray, *, max_seq_length: int) -> dict[str, set[tuple[int, ...]]]:
    """Shapes of the batches of an epoch, of fine-tuning and of evaluation, for rows of `lengths`.

    The engine `cuda` chooses shapes as evaluation does.
    """
    rows = EncodedRows(
        ids=np.full(lengths.sum(), 5, np.int32),
        offsets=offsets_of(lengths),
        second_starts=lengths.astype(np.int32),
    )
    weights = np.ones(len(lengths), np.float32)
    data = TaskData(source=None, rows=rows, targets={}, weights=weights)
    inputs = FinetuningInputs(
        data,
        batch_size=32,
        row_multiple=1,
        length_multiple=COMPILED_LENGTHS,
        max_seq_length=max_seq_length,
        pad_id=0,
        seed=1,
    )
    forward = ForwardPass(
        lambda batch: batch["input_mask"],
        data,
        Batching(max_seq_length=max_seq_length, pad_id=0, batch_tokens=4096, has_few_shapes=True),
        rows=len(lengths),
        console=Console(quiet=True),
        action="audit",
    )
    batches = inputs.batches(0).take(inputs.steps_per_epoch)
    return {
        "fine-tuning": {tuple(batch["input_mask"].shape) for batch in batches},
        "evaluation": {tuple(result.shape) for _, result in forward},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", default="base", choices=list(SIZES))
    parser.add_argument("--layers", type=int, default=2, help="more compile for longer")
    parser.add_argument("--vocab-size", type=int, default=30522)
    parser.add_argument("--lengths", type=int, nargs="+", default=[128, 512])
    parser.add_argument("--tokens", type=int, default=8192, help="of a batch")
    options = parser.parse_args()
    fuse_as_gpus()
    config = sized_config(options.size, options.vocab_size, num_hidden_layers=options.layers)
    for length in options.lengths:
        shape = StepShape(
            rows=max(1, options.tokens // length), length=length, predictions=length * 15 // 100
        )
        step = training_step_of(config, as_on_gpu())
        batch = full_batch(shape, options.vocab_size)
        audit_step(f"pretraining, {shape.rows} x {length}", step, batch, has_one_shape=True)
        deeper = config.replace(num_hidden_layers=options.layers + 1)
        print_layer(program_of_step(step, batch), deeper, batch)
    step, batch = finetuning_step(config, as_on_gpu(), shape)
    audit_step(f"fine-tuning, {shape.rows} x {shape.length}", step, batch, has_one_shape=False)
    audit_scoring(config, shape)
    random = np.random.default_rng(0)
    lengths = np.clip(random.lognormal(4, 1, 5000).astype(np.int64), 2, 512)
    for name, shapes in epoch_shapes(lengths, max_seq_length=512).items():
        print(f"{name}, 5,000 rows of 2 to 512 tokens: {len(shapes)} shapes: {sorted(shapes)}")


if __name__ == "__main__":
    main()
