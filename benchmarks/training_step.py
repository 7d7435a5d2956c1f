"""Times pretraining steps: ours, KerasHub's and PyTorch's side by side.

    python benchmarks/training_step.py [--torch-python PATH] [--precision bfloat16] [--rounds 7]

Every side is a process of its own, as its users start it, and all take turns running the same
step (forward and backward pass, AdamW, dropout on) on a random batch without padding, so that
other load on the machine falls on all of them; the first steps of a turn are not counted, since
systems take memory from processes that wait. Ours is `TrainingStep` as `train` runs it, logging
included. PyTorch runs in the interpreter that `--torch-python` names and is left out without one.
The last side multiplies the matrices of a forward pass: the best that the machine can do.

What a side prints and reads: benchmarks/side.py.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from side import Side

from bert_tf.base.processor import describe_processor

TENSORFLOW = ("ours", "keras-hub", "keras-hub-xla", "matmul")
PYTORCH = ("eager", "compile", "gathered")
FOLDER = Path(__file__).parent


def report(sides: dict[str, Side], settings: dict) -> None:
    """One row per side, with its speed as a fraction of ours."""
    ours, rows = sides["ours"], settings["batch_size"]
    print(
        f"{'':14}{'s/step':>8}{'examples/s':>12}{'processor s':>13}{'peak MB':>9}"
        f"{'ours is':>9}{'by processor':>14}"
    )
    for name, side in sides.items():
        if name == "matmul":
            continue
        seconds, busy = side.median("seconds"), side.median("processor_seconds")
        print(
            f"{name:14}{seconds:8.3f}{rows / seconds:12.2f}{busy:13.3f}"
            f"{side.median('peak_megabytes'):9.0f}{seconds / ours.median('seconds'):8.2f}x"
            f"{busy / ours.median('processor_seconds'):13.2f}x"
        )
    speed = ours.median("giga_operations") / ours.median("seconds")
    peak = sides["matmul"].median("gigaflops")
    print(
        f"ours: {ours.median('giga_operations'):.0f} GFLOP per step, {speed:.0f} GFLOP/s, "
        f"{speed / peak:.0%} of the {peak:.0f} that the matrix multiplications alone reach"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--torch-python", help="interpreter with torch and transformers")
    parser.add_argument(
        "--precision", default="float32", choices=("auto", "float32", "bfloat16", "float16")
    )
    parser.add_argument("--xla", default="auto", choices=("auto", "on", "off"), help="ours")
    parser.add_argument("--sides", nargs="+", default=None, help="some of all sides")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=2, help="steps per turn")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--predictions", type=int, default=20)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--vocab-size", type=int, default=30522)
    parser.add_argument("--dropout", type=float, default=0.1)
    options = parser.parse_args()
    settings = {
        name: value
        for name, value in vars(options).items()
        if name not in ("torch_python", "sides", "rounds")
    }
    names = [*TENSORFLOW, *(PYTORCH if options.torch_python else ())]
    chosen = [n for n in names if options.sides is None or n in (*options.sides, "ours", "matmul")]
    sides = {}
    for name in chosen:
        python = options.torch_python if name in PYTORCH else sys.executable
        script = FOLDER / f"training_step_{'pytorch' if name in PYTORCH else 'tensorflow'}.py"
        sides[name] = Side(name, [python, str(script), name, json.dumps(settings)])
        sides[name].wait_until_ready()
    for _ in range(options.rounds):
        for side in sides.values():
            side.take_turn()
    for side in sides.values():
        side.close()
    print(f"processor: {describe_processor()}")
    print(
        f"{options.layers} layers x {options.width}, batch {options.batch_size} x "
        f"{options.length}, {options.predictions} predictions, {options.precision}, dropout "
        f"{options.dropout}, median of {options.rounds} turns of {options.steps}"
    )
    report(sides, settings)


if __name__ == "__main__":
    main()
