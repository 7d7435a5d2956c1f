"""Times BERT on a GPU: ours on Keras' JAX backend and transformers' on PyTorch, side by side.

    python benchmarks/gpu_throughput.py [--size base] [--lengths 128 512] [--tokens 32768]
    python benchmarks/gpu_throughput.py --size tiny --lengths 16 32 --tokens 256 --peak-size 256 \\
        --vocab-size 500 --rounds 2    tries it on a processor

TensorFlow is not needed. Two kinds of work: `forward`, the encoder with its pooler, and `training`,
forward and backward pass of the pretraining loss, logits of masked positions alone, without dropout
and without an optimizer. Rows are full, with a mask, so that nothing is counted that is padding.
Arithmetic is bfloat16: weights are float32 and cast by each side's own means (`mixed_bfloat16`,
autocast), but PyTorch's forward pass has bfloat16 weights, as its users load them.

Every side is a process of its own, which `--jax-python` and `--torch-python` run, and all take
turns on the card; the first steps of a turn are not counted. The peak is what one large matrix
product reaches in the same turns, the better of the two libraries; the fraction of it is
the model's operations by formula, without the embeddings' look-ups, softmax and layer norms.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from side import Side

from bert_tf.config.bert import SIZES, BertConfig, sized_config
from bert_tf.models.model_flops import ModelFlops

FOLDER = Path(__file__).parent
SIDES = ("ours", "sdpa", "sdpa-compile")
KINDS = ("forward", "training")


def operations(config: BertConfig, kind: str, *, length: int, predictions: int) -> float:
    """Of one sequence, by formula."""
    forward = kind == "forward"
    training = ModelFlops.of_encoder(config).flops(
        tokens=length,
        examples=1,
        squared_lengths=length**2,
        predictions=0 if forward else predictions,
    )
    return float(training) / (3 if forward else 1)  # the backward pass does twice the work


def start_side(name: str, options: argparse.Namespace, settings: dict) -> Side:
    """Starts a side; it can import this repository's packages."""
    library = "jax" if name == "ours" else "pytorch"
    python = options.jax_python if name == "ours" else options.torch_python
    search = os.pathsep.join(filter(None, [str(FOLDER.parent), os.environ.get("PYTHONPATH")]))
    command = [python, str(FOLDER / f"gpu_throughput_{library}.py"), name, json.dumps(settings)]
    return Side(name, command, {**os.environ, "PYTHONPATH": search})


def report(sides: dict[str, Side], config: BertConfig, settings: dict) -> None:
    """A row a kind of work, length and side."""
    for name, side in sides.items():
        answer = side.answers["matmul"][0]
        print(f"{name}: {answer['versions']} on {answer['device']}")
    peak = max(side.median("operations_per_second", "matmul") for side in sides.values())
    print(f"peak: {peak / 1e12:.2f} TFLOP/s, one product of {settings['peak_size']} squared")
    print(f"{'':30}{'examples/s':>12}{'TFLOP/s':>9}{'of peak':>9}{'ours is':>9}")
    for work in settings["work"]:
        amount = work["rows"] * operations(
            config, work["kind"], length=work["length"], predictions=work["predictions"]
        )
        for name, side in sides.items():
            seconds = side.median("seconds", work["name"])
            ratio = seconds / sides["ours"].median("seconds", work["name"])
            print(
                f"{work['name']:16}{name:14}{work['rows'] / seconds:12.1f}"
                f"{amount / seconds / 1e12:9.2f}{amount / seconds / peak:9.1%}{ratio:8.2f}x"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jax-python", default=sys.executable, help="with jax and keras")
    parser.add_argument("--torch-python", default=sys.executable, help="with torch, transformers")
    parser.add_argument("--sides", nargs="+", default=list(SIDES), choices=SIDES)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--size", default="base", choices=list(SIZES))
    parser.add_argument("--vocab-size", type=int, default=30522)
    parser.add_argument("--lengths", type=int, nargs="+", default=[128, 512])
    parser.add_argument("--tokens", type=int, default=32768, help="of a batch")
    parser.add_argument("--peak-size", type=int, default=8192, help="of the matrices for the peak")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=5, help="of a turn")
    options = parser.parse_args()
    config = sized_config(
        options.size,
        options.vocab_size,
        hidden_act="gelu_pytorch_tanh",
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    settings = {
        "config": config.fields(),
        "steps": options.steps,
        "peak_size": options.peak_size,
        "work": [
            {
                "name": f"{kind} {length}",
                "kind": kind,
                "length": length,
                "rows": max(1, options.tokens // length),
                "predictions": max(1, round(0.15 * length)),
            }
            for kind in options.kinds
            for length in options.lengths
        ],
    }
    names = [name for name in SIDES if name == "ours" or name in options.sides]
    sides = {}
    for name in names:
        sides[name] = start_side(name, options, settings)
        sides[name].wait_until_ready()
    for _ in range(options.rounds):
        for request in ("matmul", *(work["name"] for work in settings["work"])):
            for side in sides.values():
                side.take_turn(request)
    for side in sides.values():
        side.close()
    print(
        f"BERT-{options.size}, {options.tokens} tokens per batch, bfloat16, no dropout, median of "
        f"{options.rounds} turns of {options.steps}"
    )
    report(sides, config, settings)


if __name__ == "__main__":
    main()
