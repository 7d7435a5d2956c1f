"""Measures our programs on a GPU machine that has jaxlib but no TensorFlow, beside PyTorch.

    python benchmarks/gpu_exported_step.py export FOLDER [--sizes base large]
    python benchmarks/gpu_exported_step.py run FOLDER --torch-python PYTHON [--minutes 9.5]
    python benchmarks/gpu_exported_step.py report FOLDER

`export` runs on any machine with this package: it traces pretraining at 128 and 512 tokens,
fine-tuning and scoring at 384 as for a GPU (gpu_exported_programs.py), and writes megabytes.

`run` needs only NumPy, jax and jaxlib, and for the other side a Python with torch and
transformers. It measures ours, then transformers with `torch.compile` and cuDNN's attention, with
`torch.compile`, and as it is, on the same batches; each line goes to FOLDER/results.jsonl as soon
as it is known. It ends after `--minutes`; the same command again measures the rest. XLA
there is another version than TensorFlow's, so figures are close to those of `train`, not equal.

`report` prints sequences per second and the ratio to the best of the three of PyTorch.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from side import Side

TOKENS = {"base": 32768, "large": 16384}  # of a batch; activations of large need 80 GB with more
DEFAULT_TOKENS = 32768
RIVALS = ("sdpa-compile-cudnn", "sdpa-compile", "sdpa")
RESULTS = "results.jsonl"
WORK = "work.json"
# The flag with which `bert-pipeline` runs: products are cuBLAS's, which compiles in a minute less.
_XLA_FLAGS = "--xla_gpu_enable_triton_gemm=false"
_COPY = re.compile(r"mhlo\.copy (%[\w#]+) : (tensor<[^>]*>)")
_COMPILED_AT_ONCE = 4
_BEST_TFLOPS = 989.0  # dense bfloat16 of an H100 SXM, by its datasheet


def export(options: argparse.Namespace) -> None:
    """Write programs, and a description of the same work for PyTorch."""
    from gpu_exported_programs import export_variants, sized, works

    kinds: dict[str, Any] = {}
    for size in options.sizes:
        tokens = options.tokens or TOKENS.get(size, DEFAULT_TOKENS)
        config_of = sized(size, options.vocab_size)
        work = works(tokens, lengths=options.lengths, task_length=options.task_length)
        export_variants(
            options.folder,
            config_of,
            [each for each in work if each["kind"] in options.kinds],
            size=size,
            layers=options.layers or [None],
            forms=options.forms,
        )
        kinds[size] = {"config": config_of().fields(), "work": work}
    (options.folder / WORK).write_text(json.dumps(kinds))


def run(options: argparse.Namespace) -> None:
    """Measure, in child processes so that each has the memory of the card, until time is over."""
    ends = time.monotonic() + 60 * options.minutes
    described = json.loads((options.folder / WORK).read_text())
    for size in described:
        for form in ("fused", "rivals", "others"):
            left = ends - time.monotonic()
            if form != "rivals":
                _run_ours(options, size, form, left)
            elif options.torch_python:
                for rival in RIVALS:
                    _run_rival(options, size, described[size], rival, ends - time.monotonic())
    if time.monotonic() > ends:
        print("time is over; the same command measures the rest")
    report(options)


def _run_ours(options: argparse.Namespace, size: str, form: str, seconds: float) -> None:
    command = [sys.executable, __file__, "time", str(options.folder), "--size", size]
    command += ["--form", form, "--seconds", str(options.seconds)]
    if seconds <= 0:
        return
    try:
        subprocess.run(command, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        print(f"ours, {size}, {form}: stopped, as time is over", flush=True)


def _run_rival(
    options: argparse.Namespace, size: str, described: dict[str, Any], rival: str, seconds: float
) -> None:
    """Measure the missing results of a side of PyTorch; a side that fails costs only itself."""
    missing = [
        each
        for each in described["work"]
        if not _is_measured(options.folder, {"size": size, "work": each["name"], "side": rival})
    ]
    if not missing or seconds <= 0:
        return
    settings = {"config": described["config"], "work": missing, "steps": 20, "peak_size": 8192}
    script = Path(__file__).with_name("gpu_throughput_pytorch.py")
    side = Side(rival, [options.torch_python, str(script), rival, json.dumps(settings)])
    timer = threading.Timer(seconds, side.stop)
    timer.start()
    try:
        side.wait_until_ready()
        for each in missing:
            for _ in range(3):
                side.take_turn(each["name"])
            speed = each["rows"] / side.median("seconds", each["name"])
            result = {"size": size, "work": each["name"], "side": rival}
            _keep(options.folder, result | {"sequences_per_second": round(speed, 1)})
        side.close()
    except SystemExit as ended:
        print(ended, flush=True)
    finally:
        timer.cancel()
        side.stop()


def time_ours(options: argparse.Namespace) -> None:
    """Compile variants side by side, then time one after the other on jax's first device."""
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_XLA_FLAGS}".strip()
    import jax

    jax.config.update("jax_enable_x64", True)  # counters are int64
    device = jax.devices()[0]
    print(f"{device.device_kind}, jax {jax.__version__}", flush=True)
    chosen = []
    for file in sorted(options.folder.glob("*.json"), key=lambda file: file.stem):
        facts = json.loads(file.read_text())
        if file.name == WORK or facts["size"] != options.size:
            continue
        facts["side"] = f"ours, {facts['form']}"
        is_wanted = (facts["form"] == "fused") == (options.form == "fused")
        if is_wanted and not _is_measured(options.folder, facts):
            chosen.append((file, facts))
    with ThreadPoolExecutor(_COMPILED_AT_ONCE) as pool:
        programs = [pool.submit(_compiled, device, file) for file, _ in chosen]
        for (file, facts), program in zip(chosen, programs, strict=True):
            result = {key: facts[key] for key in ("size", "work", "side", "layers", "steps")}
            result["device"] = device.device_kind
            try:
                executable, result["compile_seconds"] = program.result()
                result |= _timed(device, executable, file, facts, options.seconds)
            except Exception as error:  # one variant's failure is no reason to lose the others
                result["error"] = str(error).partition("\n")[0][:300]
            _keep(options.folder, result)


def module_text(file: Path) -> str:
    """Read a program as StableHLO.

    XLA writes copies of its results as `mhlo.copy`, which plugins for GPUs do not read; a
    reshape to the same shape is the same.
    """
    from jax._src.lib import xla_client
    from jaxlib import _jax

    program = xla_client.XlaComputation(file.with_suffix(".hlo").read_bytes())
    text = _jax.mlir.xla_computation_to_mlir_module(program)
    return _COPY.sub(r"stablehlo.reshape \1 : (\2) -> \2", text)


def _compiled(device: Any, file: Path) -> tuple[Any, float]:
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jaxlib.mlir import ir

    began = time.perf_counter()
    with mlir.make_ir_context():
        module = ir.Module.parse(module_text(file))
    devices = xla_client.DeviceList((device,))
    executable = device.client.compile_and_load(module, devices, xla_client.CompileOptions())
    return executable, round(time.perf_counter() - began, 1)


def _inputs(file: Path, facts: dict[str, Any]) -> list[np.ndarray]:
    stored = np.load(file.with_suffix(".npz"))
    random = np.random.default_rng(0)

    def drawn(shape: list[int], deviation: float) -> np.ndarray:
        return np.float32(deviation) * random.standard_normal(shape, np.float32)

    return [
        stored[str(number)] if str(number) in stored else drawn(**facts["drawn"][str(number)])
        for number in range(facts["inputs"])
    ]


def _timed(
    device: Any, executable: Any, file: Path, facts: dict[str, Any], seconds: float
) -> dict[str, Any]:
    """Run calls, each with the weights of the one before."""
    import jax

    buffers = [jax.device_put(each, device) for each in _inputs(file, facts)]

    def call() -> Any:
        results = executable.execute(buffers)
        for output, parameter in facts["fed_back"].items():
            buffers[int(parameter)] = results[int(output)]
        return results[0]

    np.asarray(call())
    calls = max(1, 8 // facts["steps"])
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        for _ in range(calls):
            first = call()
        count += calls * facts["steps"]
        number = float(np.ravel(np.asarray(first))[0])  # waits for the device
    taken = time.perf_counter() - start
    return {
        "sequences_per_second": round(count * facts["rows"] / taken, 1),
        "milliseconds": round(1000 * taken / count, 2),
        "first_number": number,
    }


def _results(folder: Path) -> list[dict[str, Any]]:
    path = folder / RESULTS
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _is_measured(folder: Path, facts: dict[str, Any]) -> bool:
    keys = [key for key in ("size", "work", "side", "layers") if key in facts]
    return any(
        "error" not in result and all(result.get(key) == facts[key] for key in keys)
        for result in _results(folder)
    )


def _keep(folder: Path, result: dict[str, Any]) -> None:
    with (folder / RESULTS).open("a") as stream:
        stream.write(json.dumps(result) + "\n")
    print(json.dumps(result), flush=True)


def report(options: argparse.Namespace) -> None:
    """Print a line per size, work and side, with the ratio to the best of PyTorch."""
    speeds = {
        (result["size"], result["work"], result["side"]): result["sequences_per_second"]
        for result in _results(options.folder)
        if "error" not in result
    }
    for size, work in dict.fromkeys((size, work) for size, work, _ in speeds):
        sides = {side: speed for (*of, side), speed in speeds.items() if of == [size, work]}
        best = max((speed for side, speed in sides.items() if side in RIVALS), default=None)
        for side, speed in sides.items():
            ratio = f"{speed / best:6.2f} x best" if best else ""
            print(f"{size:6} {work:16} {side:32} {speed:10,.1f} sequences/s {ratio}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=("export", "run", "report", "time"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sizes", nargs="+", default=["base", "large"], help="to export")
    parser.add_argument("--vocab-size", type=int, default=30522)
    parser.add_argument("--tokens", type=int, help="of a batch (default: by size)")
    parser.add_argument("--lengths", type=int, nargs="+", default=[128, 512], help="to pretrain at")
    parser.add_argument("--task-length", type=int, default=384, help="to fine-tune and score at")
    parser.add_argument("--layers", type=int, nargs="+", help="instead of those of the size")
    parser.add_argument("--forms", nargs="+", default=["fused", "plain"])
    kinds = ["pretraining", "finetuning", "scoring"]
    parser.add_argument("--kinds", nargs="+", default=kinds, choices=kinds)
    parser.add_argument("--minutes", type=float, default=9.5, help="after which `run` ends")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each of our variants")
    parser.add_argument("--torch-python", help="Python with torch and transformers")
    parser.add_argument("--size", help=argparse.SUPPRESS)
    parser.add_argument("--form", help=argparse.SUPPRESS)
    options = parser.parse_args()
    actions = {"export": export, "run": run, "report": report, "time": time_ours}
    actions[options.action](options)


if __name__ == "__main__":
    main()
