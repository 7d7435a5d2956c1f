"""Times commands on a GPU beside transformers' models with sdpa attention on PyTorch.

    python benchmarks/gpu_throughput.py [--size base] [--torch-python PYTHON]
    python benchmarks/gpu_throughput.py --anyway --sides ours --size tiny --steps 10 --rows 200 \\
        --tokens 2048    tries it on a processor

Four kinds of work on random words, rows that are full: pretraining at lengths 128 and 512,
fine-tuning a classifier at 384, and scoring with it. Ours are `bert-pipeline train`, `finetune` and
`score` as users run them; speed is the median of the second half of their log lines. Those
of PyTorch (gpu_throughput_pytorch.py) are steps on one batch that is on the card already, in
bfloat16 by autocast, with dropout and fused AdamW; scoring is a forward pass of bfloat16 weights.

Prints sequences per second, the fraction of two peaks, by the model's operations without padding,
and the memory of the card at its highest. One peak is 989 TFLOP/s, dense bfloat16 of an H100 SXM by
its datasheet; the other is that of a large matrix product there, which is known if PyTorch runs.

Each result is written to `--results` as soon as it is known. The same command again measures the
rest, so that a full run, about half an hour, can be divided: `--sides` names some.
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
DATASHEET_PEAK = 989e12  # operations per second of an H100 SXM in dense bfloat16
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
    parser.add_argument("--results", type=Path, default=Path("gpu_throughput.jsonl"))
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
    results = Results(options.results, size=options.size, tokens=options.tokens)
    for name in options.sides:
        missing = [each for each in work if results.get(name, each["name"]) is None]
        if not missing:
            continue
        try:
            if name in OURS:
                with tempfile.TemporaryDirectory() as folder:
                    run_commands(Path(folder), options, work, results, name)
            else:
                run_pytorch(name, options, config, missing, results)
        except SystemExit as ended:  # a side that fails costs only itself
            print(f"{name}: {ended}", flush=True)
    report(results, options.sides, work, config)


class Results:
    """Measured speeds, kept in a file of JSON lines.

    Args:
        path: of the file.
        settings: of the benchmark; lines of other settings stay.
    """

    def __init__(self, path: Path, **settings: object):
        self._path = path
        self._settings = settings

    def keep(self, side: str, work: str, **numbers: float | None) -> None:
        line = {**self._settings, "side": side, "work": work, **numbers}
        with self._path.open("a") as stream:
            stream.write(json.dumps(line) + "\n")
        print(json.dumps(line), flush=True)

    def get(self, side: str, work: str) -> dict | None:
        """Return the last line of a side and work; None if there is none."""
        wanted = {**self._settings, "side": side, "work": work}
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        alike = [line for line in map(json.loads, lines) if wanted.items() <= line.items()]
        return alike[-1] if alike else None


def run_commands(
    folder: Path, options: argparse.Namespace, work: list[dict], results: Results, side: str
) -> None:
    """Measures a side of `OURS`: all kinds of work, since each begins where another ended."""
    dropout = OURS[side]
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
        results.keep(side, each["name"], speed=logged_speed(run), memory=memory)
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
    results.keep(side, finetuning["name"], speed=logged_speed(tuned), memory=memory)
    timed(command("export", run=tuned, output=model))
    memory = with_memory(command("score", model=model, input=folder / "rows.csv", output=scored))
    manifest = json.loads(Path(f"{scored}.manifest.json").read_text())
    speed = manifest["metrics"]["rows_per_second"]
    results.keep(side, scoring["name"], speed=speed, memory=memory)


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
    """Run a command; the most bytes of the first GPU that were in use meanwhile."""
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
    name: str, options: argparse.Namespace, config: BertConfig, work: list[dict], results: Results
) -> None:
    """Measures a side of PyTorch, and operations per second of a large product."""
    settings = {
        "config": config.fields(),
        "steps": 20,
        "peak_size": options.peak_size,
        "work": work,
    }
    script = Path(__file__).with_name("gpu_throughput_pytorch.py")
    side = Side(name, [options.torch_python, str(script), name, json.dumps(settings)])
    side.wait_until_ready()
    for request in ["matmul", *(each["name"] for each in work)]:
        for _ in range(3):
            side.take_turn(request)
        if request == "matmul":
            results.keep("any", request, speed=side.median("operations_per_second", request))
            continue
        (rows,) = (each["rows"] for each in work if each["name"] == request)
        memory = int(side.median("memory", request)) or None
        speed = rows / side.median("seconds", request)
        results.keep(name, request, speed=speed, memory=memory)
    side.close()


def report(results: Results, sides: Sequence[str], work: list[dict], config: BertConfig) -> None:
    """Print a row for each kind of work and side."""
    measured = results.get("any", "matmul")
    peak = None if measured is None else measured["speed"]
    if peak is not None:
        print(f"a large product: {peak / 1e12:.1f} TFLOP/s")
    print(f"{'':18}{'':20}{'sequences/s':>12}{'of 989':>9}{'of peak':>9}{'GiB':>7}")
    for each in work:
        is_pretraining = each["kind"] == "pretraining"
        flops = ModelFlops.of_encoder(config, reads_all_tokens=False).flops(
            tokens=each["length"],
            examples=1,
            squared_lengths=each["length"] ** 2,
            predictions=each["predictions"] if is_pretraining else 0,
        )
        for side in sides:
            found = results.get(side, each["name"])
            if found is None:
                continue
            rate = float(flops) * found["speed"] / (3 if each["kind"] == "scoring" else 1)
            fraction = f"{rate / peak:.1%}" if peak else "-"
            size = f"{found['memory'] / 2**30:.1f}" if found["memory"] else "-"
            print(
                f"{each['name']:18}{side:20}{found['speed']:12,.1f}"
                f"{rate / DATASHEET_PEAK:>9.1%}{fraction:>9}{size:>7}"
            )


if __name__ == "__main__":
    main()
