"""Times commands on a GPU beside transformers' models with sdpa attention on PyTorch.

    python benchmarks/gpu_throughput.py [--size base] [--torch-python PYTHON]
    python benchmarks/gpu_throughput.py --anyway --sides ours --size tiny --steps 10 --rows 200 \\
        --tokens 2048    tries it on a processor

Four kinds of work on random words, rows that are full: pretraining at lengths 128 and 512,
fine-tuning a classifier at 384, and scoring with it. Ours are `bert-pipeline train`, `finetune` and
`score` as users run them; speed is what they log, the median of the second half of the lines. Those
of PyTorch (gpu_throughput_pytorch.py) are steps on one batch that is on the card already, in
bfloat16 by autocast, with dropout and fused AdamW; scoring is a forward pass of bfloat16 weights.

Prints sequences per second, the fraction of the peak, by the model's operations without padding,
and the memory of the card at its highest. The peak is what a large matrix product reaches there; it
is known for both sides if PyTorch runs.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np
from commands import bert_pipeline, timed
from side import Side

from bert_tf.base.gpus import nvidia_gpus
from bert_tf.config.bert import SIZES, BertConfig, sized_config
from bert_tf.models.model_flops import ModelFlops

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
FINETUNING_LENGTH = 384
# Ours with dropout 0.1 of attention, which GPUs compute in the plain form, and with 0, fused.
OURS = {"ours": 0.1, "ours-fused": 0.0}
SIDES = [*OURS, "sdpa", "sdpa-compile", "sdpa-compile-cudnn"]
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sides", nargs="+", default=SIDES)
    parser.add_argument("--torch-python", default=sys.executable, help="with torch, transformers")
    parser.add_argument("--size", default="base", choices=list(SIZES))
    parser.add_argument("--vocab-size", type=int, default=30522)
    parser.add_argument("--tokens", type=int, default=32768, help="of a batch")
    parser.add_argument("--steps", type=int, default=200, help="of pretraining")
    parser.add_argument("--rows", type=int, default=20000, help="to score; a tenth to fine-tune on")
    parser.add_argument("--peak-size", type=int, default=8192, help="of the matrices for the peak")
    parser.add_argument("--anyway", action="store_true", help="without a GPU, too")
    options = parser.parse_args()
    gpus = nvidia_gpus()
    if not gpus and not options.anyway:
        sys.exit("no GPU")
    print(f"{gpus[0].name if gpus else 'no GPU'}, BERT-{options.size}, {options.tokens} tokens")
    config = sized_config(options.size, options.vocab_size)
    work = [
        {
            "name": f"{kind} {length}",
            "kind": kind,
            "length": length,
            "rows": max(1, options.tokens // length),
            "predictions": max(1, length * 15 // 100) if kind == "pretraining" else 0,
        }
        for kind, length in (
            *(("pretraining", length) for length in (128, 512)),
            *(("finetuning", FINETUNING_LENGTH), ("scoring", FINETUNING_LENGTH)),
        )
    ]
    found: dict[str, dict[str, tuple[float, int | None]]] = {}
    peak = None
    for name in options.sides:
        if name in OURS:
            with tempfile.TemporaryDirectory() as folder:
                found[name] = run_commands(Path(folder), options, work, dropout=OURS[name])
            print(f"{name}: {found[name]}", flush=True)
        else:
            found[name], peak = run_pytorch(name, options, config, work)
            print(f"{name}: {found[name]}", flush=True)
    report(found, work, config, peak)


def run_commands(
    folder: Path, options: argparse.Namespace, work: list[dict], *, dropout: float
) -> dict[str, tuple[float, int | None]]:
    """Sequences per second and bytes of the card by name of the work.

    `dropout` is that of attention; 0 lets cuDNN compute it.
    """
    words = [
        "".join(letters)
        for letters in itertools.islice(
            itertools.product(LETTERS, repeat=4), options.vocab_size - len(SPECIALS)
        )
    ]
    (folder / "vocab.txt").write_text("\n".join([*SPECIALS, *words, ""]))
    random = np.random.default_rng(0)

    def text(count: int) -> str:
        return " ".join(random.choice(words, count))

    longest = max(each["rows"] * each["length"] for each in work)
    sentences = [text(30) for _ in range(8 * longest // 30)]
    documents = [
        "\n".join(sentences[begin : begin + 400]) for begin in range(0, len(sentences), 400)
    ]
    (folder / "corpus.txt").write_text("\n\n".join(documents))
    found = {}
    for each in work[:2]:
        data, run = folder / f"data-{each['length']}", folder / f"run-{each['length']}"
        records = {"input": folder / "corpus.txt", "vocab": folder / "vocab.txt", "output": data}
        timed(
            command(
                "preprocess",
                **records,
                max_seq_length=each["length"],
                settings=["preprocess.pair_task=none", "preprocess.masking=dynamic"],
            )
        )
        sizes = {"size": options.size, "batch_size": each["rows"], "steps": options.steps}
        settings = [f"train.attention_probs_dropout_prob={dropout}"]
        memory = with_memory(command("train", data=data, output=run, **sizes, settings=settings))
        found[each["name"]] = logged_speed(run), memory
    for name, rows in (("rows.csv", options.rows), ("train.csv", max(100, options.rows // 10))):
        with (folder / name).open("w", newline="") as stream:
            table = csv.writer(stream)
            table.writerow(["text", "label"])
            table.writerows([text(FINETUNING_LENGTH), row % 2] for row in range(rows))
    finetuning, scoring = work[2:]
    tuned, model, scored = folder / "tuned", folder / "model", folder / "scored.csv"
    memory = with_memory(
        command(
            *("finetune", "classification"),
            train=folder / "train.csv",
            init=folder / "run-512",
            output=tuned,
            epochs=2,
            max_seq_length=FINETUNING_LENGTH,
            batch_size=finetuning["rows"],
            settings=["finetune.log_every=1"],
        )
    )
    found[finetuning["name"]] = logged_speed(tuned), memory
    timed(command("export", run=tuned, output=model))
    memory = with_memory(command("score", model=model, input=folder / "rows.csv", output=scored))
    manifest = json.loads(Path(f"{scored}.manifest.json").read_text())
    found[scoring["name"]] = manifest["metrics"]["rows_per_second"], memory
    return found


def command(*words: str, settings: Sequence[str] = (), **flags: object) -> list[str]:
    given = [[f"--{name.replace('_', '-')}", value] for name, value in flags.items()]
    given += [["--set", setting] for setting in settings]
    return bert_pipeline(*words, *itertools.chain.from_iterable(given))


def logged_speed(run: Path) -> float:
    """Sequences per second, of the second half of a run's lines."""
    lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    speeds = [line["examples_per_second"] for line in lines if "examples_per_second" in line]
    return median(speeds[len(speeds) // 2 :])


def with_memory(arguments: list[str]) -> int | None:
    """Runs a command; the most bytes of the first GPU that were in use meanwhile."""
    is_done, most = threading.Event(), 0

    def watch() -> None:
        nonlocal most
        while not is_done.wait(1.0):
            most = max(most, used_memory())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        timed(arguments)
    finally:
        is_done.set()
        thread.join()
    return most or None


def used_memory() -> int:
    """Bytes in use on the first GPU; 0 where not known."""
    command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    try:
        said = subprocess.run(command, capture_output=True, text=True).stdout
    except OSError:
        return 0
    return int(said.split()[0]) << 20 if said.strip() else 0


def run_pytorch(
    name: str, options: argparse.Namespace, config: BertConfig, work: list[dict]
) -> tuple[dict[str, tuple[float, int | None]], float]:
    """As `run_commands`, and operations per second of a large product."""
    settings = {
        "config": config.fields(),
        "steps": 20,
        "peak_size": options.peak_size,
        "work": work,
    }
    script = Path(__file__).with_name("gpu_throughput_pytorch.py")
    side = Side(name, [options.torch_python, str(script), name, json.dumps(settings)])
    side.wait_until_ready()
    for request in ["matmul", *(each["name"] for each in work)] * 3:
        side.take_turn(request)
    side.close()
    found: dict[str, tuple[float, int | None]] = {
        each["name"]: (
            each["rows"] / side.median("seconds", each["name"]),
            int(side.median("memory", each["name"])) or None,
        )
        for each in work
    }
    return found, side.median("operations_per_second", "matmul")


def report(
    found: dict[str, dict[str, tuple[float, int | None]]],
    work: list[dict],
    config: BertConfig,
    peak: float | None,
) -> None:
    """A row for each kind of work and side."""
    if peak is not None:
        print(f"peak: {peak / 1e12:.1f} TFLOP/s")
    print(f"{'':18}{'':14}{'sequences/s':>12}{'of peak':>9}{'GiB':>7}")
    for each in work:
        is_pretraining = each["kind"] == "pretraining"
        flops = ModelFlops.of_encoder(config, reads_all_tokens=False).flops(
            tokens=each["length"],
            examples=1,
            squared_lengths=each["length"] ** 2,
            predictions=each["predictions"] if is_pretraining else 0,
        )
        for side, speeds in found.items():
            speed, memory = speeds[each["name"]]
            rate = float(flops) * speed / (3 if each["kind"] == "scoring" else 1)
            fraction = f"{rate / peak:.1%}" if peak else "-"
            size = f"{memory / 2**30:.1f}" if memory else "-"
            print(f"{each['name']:18}{side:14}{speed:12,.1f}{fraction:>9}{size:>7}")


if __name__ == "__main__":
    main()
