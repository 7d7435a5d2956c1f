"""Measures our training steps on a GPU machine that has jaxlib but no TensorFlow.

    python benchmarks/gpu_exported_step.py export FOLDER [--size base] [--tokens 32768]
    python benchmarks/gpu_exported_step.py run FOLDER [--seconds 10]

`export` runs on any machine with this package: it traces pretraining steps as for a GPU, and writes
XLA's program of each variant, and the inputs, a few megabytes. `run` needs only NumPy, jax and
jaxlib: it compiles each program, feeds the weights back, and writes sequences per second to
FOLDER/results.jsonl after each variant, so that a lease that ends early loses one. XLA there is
another version than TensorFlow's: the order of the variants carries over, the figures roughly.

Variants: lengths 128 and 512; attention plain with dropout 0.1, plain without, and fused.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from pathlib import Path
from typing import Any

import numpy as np

LENGTHS = (128, 512)
# Rate of dropout of attention, and whether cuDNN computes it.
ATTENTION = {"plain, dropout 0.1": (0.1, False), "plain": (0.0, False), "fused": (0.0, True)}
_LARGE = 65_536  # bytes from which an input is drawn anew instead of stored
# Of XLA's text: an output and the parameter whose memory it takes.
_ALIAS = re.compile(r"\{(\d+)\}: \((\d+), \{\}")


def export(folder: Path, *, size: str, vocab_size: int, tokens: int) -> None:
    """Write `NAME.hlo`, `NAME.npz` and `NAME.json` for each variant."""
    import tensorflow as tf

    from bert_tf.config.bert import sized_config
    from bert_tf.pretraining.step_trial import StepShape, full_batch, training_step_of
    from bert_tf.training.arithmetic import Arithmetic, PrecisionPolicy

    folder.mkdir(parents=True, exist_ok=True)
    for length in LENGTHS:
        for attention, (dropout, is_fused) in ATTENTION.items():
            shape = StepShape(
                rows=max(1, tokens // length), length=length, predictions=length * 15 // 100
            )
            config = sized_config(size, vocab_size, attention_probs_dropout_prob=dropout)
            arithmetic = Arithmetic(
                precision=PrecisionPolicy("mixed_bfloat16", use_xla=True),
                cpu_kernels=False,
                fuses_attention=is_fused,
            )
            step = training_step_of(config, arithmetic)
            batch = full_batch(shape, vocab_size)
            tensors = {name: tf.constant(values) for name, values in batch.items()}
            arguments = (tensors, tf.constant(0), tf.constant(1e-4), 1)
            programs = step.compiled.experimental_get_compiler_ir(*arguments)
            function = step.compiled.get_concrete_function(*arguments)
            values = [each.numpy() for each in tf.nest.flatten(arguments[:3])]
            values += [_value_of(handle) for handle in function.captured_inputs]
            name = f"{length} {attention}"
            (folder / f"{name}.hlo").write_bytes(programs(stage="hlo_serialized"))
            _write_inputs(folder / name, values, rows=shape.rows, text=programs(stage="hlo"))
            print(f"{name}: exported", flush=True)


def _value_of(handle: Any) -> np.ndarray:
    """Read the variable behind a resource handle."""
    import tensorflow as tf

    (kind,) = handle._handle_data.shape_and_type
    return tf.raw_ops.ReadVariableOp(resource=handle, dtype=kind.dtype).numpy()


def _write_inputs(path: Path, values: list[np.ndarray], *, rows: int, text: str) -> None:
    """Store small inputs; of large ones their shapes, and whether they are all zeros."""
    stored, drawn = {}, {}
    for number, value in enumerate(values):
        if value.nbytes < _LARGE or not np.issubdtype(value.dtype, np.floating):
            stored[str(number)] = value
        else:
            drawn[str(number)] = {"shape": value.shape, "deviation": float(value.std())}
    np.savez(path.with_name(f"{path.name}.npz"), allow_pickle=False, **stored)
    header = text[: text.index("\n")]
    fed_back = dict(_ALIAS.findall(header))
    facts = {"rows": rows, "inputs": len(values), "drawn": drawn, "fed_back": fed_back}
    path.with_name(f"{path.name}.json").write_text(json.dumps(facts))


def run(folder: Path, *, seconds: float) -> None:
    """Time every exported variant on the first device of jax."""
    import jax
    from jax._src.lib import xla_client
    from jaxlib import _jax

    jax.config.update("jax_enable_x64", True)  # counters are int64
    device = jax.devices()[0]
    print(f"{device.device_kind}, jax {jax.__version__}", flush=True)
    for file in sorted(folder.glob("*.json")):
        facts = json.loads(file.read_text())
        program = xla_client.XlaComputation(file.with_suffix(".hlo").read_bytes())
        module = _jax.mlir.xla_computation_to_mlir_module(program)
        devices = xla_client.DeviceList((device,))
        result: dict[str, Any] = {"name": file.stem, "device": device.device_kind}
        try:
            began = time.perf_counter()
            compiled = device.client.compile_and_load(module, devices, xla_client.CompileOptions())
            result["compile_seconds"] = round(time.perf_counter() - began, 1)
            buffers = [jax.device_put(each, device) for each in _read_inputs(file, facts)]
            result |= _timed(compiled, buffers, facts, seconds)
        except Exception as error:  # what one variant cannot do is no reason to lose the others
            result["error"] = str(error).partition("\n")[0]
        with (folder / "results.jsonl").open("a") as stream:
            stream.write(json.dumps(result) + "\n")
        print(json.dumps(result), flush=True)


def _read_inputs(file: Path, facts: dict[str, Any]) -> list[np.ndarray]:
    stored = np.load(file.with_suffix(".npz"))
    random = np.random.default_rng(0)

    def drawn(shape: list[int], deviation: float) -> np.ndarray:
        return (deviation * random.standard_normal(shape)).astype(np.float32)

    return [
        stored[str(number)] if str(number) in stored else drawn(**facts["drawn"][str(number)])
        for number in range(facts["inputs"])
    ]


def _timed(
    compiled: Any, buffers: list[Any], facts: dict[str, Any], seconds: float
) -> dict[str, Any]:
    """Run steps, each with the weights of the one before."""

    def step() -> Any:
        results = compiled.execute(buffers)
        for output, parameter in facts["fed_back"].items():
            buffers[int(parameter)] = results[int(output)]
        return results[0]

    np.asarray(step())
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        for _ in range(10):
            logged = step()
        count += 10
        loss = float(np.asarray(logged)[0])  # waits for the device
    taken = time.perf_counter() - start
    return {
        "sequences_per_second": round(count * facts["rows"] / taken, 1),
        "milliseconds": round(1000 * taken / count, 2),
        "loss": loss,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=("export", "run"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", default="base")
    parser.add_argument("--vocab-size", type=int, default=30522)
    parser.add_argument("--tokens", type=int, default=32768, help="of a batch")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each variant")
    options = parser.parse_args()
    if options.action == "export":
        export(
            options.folder,
            size=options.size,
            vocab_size=options.vocab_size,
            tokens=options.tokens,
        )
    else:
        run(options.folder, seconds=options.seconds)


if __name__ == "__main__":
    main()
