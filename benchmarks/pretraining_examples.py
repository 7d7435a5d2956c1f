"""Examples a second of making pretraining data: ours against google-research/bert's script.

    python benchmarks/pretraining_examples.py --reference create_pretraining_data.py \
        --text corpus.txt --vocab vocab.txt [--megabytes 3] [--dupe-factor 5] [--rounds 1]

`--reference` is the script of github.com/google-research/bert, with `tokenization.py` beside it.
Both get the same first megabytes of the same text (a sentence a line, blank lines between
documents) and run as whole processes, in turns. A run over a few lines beforehand shows what
starting up costs (and compiles our kernels, which is done once per installation); rates are given
with and without it. Afterwards both outputs are read and their statistics printed side by side.
The reference runs in a temporary folder, with `tensorflow` replaced by its `compat.v1`.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf

from bert_tf.config.processor import describe_processor
from bert_tf.data.records import feature_spec

ROOT = Path(__file__).parent.parent
LENGTH, PREDICTIONS = 128, 20
_BERT_PIPELINE = "from pipeline.cli.main import main; main()"


def first_documents(path: Path, size: float) -> str:
    """About the first `size` bytes of a text, whole documents."""
    documents, total = [], 0
    for document in path.read_text(encoding="utf-8").split("\n\n"):
        if total >= size:
            break
        documents.append(document.strip("\n"))
        total += len(document.encode("utf-8"))
    return "\n\n".join(documents) + "\n"


def timed(command: list[str]) -> tuple[float, float]:
    """Seconds of wall clock and of processor time of a process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    wall = time.perf_counter() - start
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr[-3000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def patched_reference(reference: Path, folder: Path) -> Path:
    """A copy of the script and its tokenizer that runs on TensorFlow 2."""
    for name in (reference.name, "tokenization.py"):
        text = (reference.parent / name).read_text(encoding="utf-8")
        text = text.replace("import tensorflow as tf", "import tensorflow.compat.v1 as tf")
        (folder / name).write_text(text, encoding="utf-8")
    return folder / reference.name


def our_command(text: Path, vocab: Path, output: Path, dupe_factor: int) -> list[str]:
    return [
        sys.executable, "-c", _BERT_PIPELINE, "preprocess", "--overwrite",
        "--input", str(text), "--set", "preprocess.text_layout=sentences",
        "--vocab", str(vocab), "--output", str(output), "--eval-fraction", "0",
        "--num-shards", "1", "--dupe-factor", str(dupe_factor),
    ]  # fmt: skip


def their_command(
    script: Path, text: Path, vocab: Path, output: Path, dupe_factor: int
) -> list[str]:
    return [
        sys.executable, str(script), f"--input_file={text}", f"--output_file={output}",
        f"--vocab_file={vocab}", f"--dupe_factor={dupe_factor}", f"--max_seq_length={LENGTH}",
        f"--max_predictions_per_seq={PREDICTIONS}",
    ]  # fmt: skip


def statistics(path: Path) -> dict[str, float]:
    """What the records of a file are like."""
    records = tf.data.TFRecordDataset(str(path)).batch(10_000)
    parts = [tf.io.parse_example(batch, feature_spec(LENGTH, PREDICTIONS)) for batch in records]
    features = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    lengths = features["input_mask"].sum(axis=1)
    second = features["segment_ids"].sum(axis=1) - 1
    weights = features["masked_lm_weights"] > 0
    rows = np.arange(len(lengths))[:, None]
    now = features["input_ids"][rows, features["masked_lm_positions"]][weights]
    mask_id = np.bincount(now).argmax()
    kept = now == features["masked_lm_ids"][weights]
    return {
        "examples": len(lengths),
        "pieces an example": lengths.mean(),
        "  standard deviation": lengths.std(),
        "  share of full examples": (lengths == LENGTH).mean(),
        "pieces of the first segment": (lengths - second - 3).mean(),
        "pieces of the second segment": second.mean(),
        "targets an example": weights.sum(axis=1).mean(),
        "targets a piece": weights.sum() / lengths.sum(),
        "share of [MASK]": (now == mask_id).mean(),
        "share of kept pieces": kept.mean(),
        "share of random pieces": ((now != mask_id) & ~kept).mean(),
        "share of random next": features["next_sentence_labels"].mean(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--vocab", type=Path, required=True)
    parser.add_argument("--megabytes", type=float, default=3.0)
    parser.add_argument("--dupe-factor", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script = patched_reference(options.reference, folder)
        text, few_lines = folder / "text.txt", folder / "few.txt"
        text.write_text(first_documents(options.text, options.megabytes * 1e6), encoding="utf-8")
        few_lines.write_text(first_documents(options.text, 20_000), encoding="utf-8")
        vocab = options.vocab.resolve()
        ours, theirs = folder / "ours", folder / "theirs.tfrecord"

        def run(side: str, source: Path) -> tuple[float, float]:
            if side == "ours":
                return timed(our_command(source, vocab, ours, options.dupe_factor))
            return timed(their_command(script, source, vocab, theirs, options.dupe_factor))

        sides = ("ours", "reference")
        run("ours", few_lines)
        start_up = {side: run(side, few_lines) for side in sides}
        times = {side: [] for side in sides}
        for _ in range(options.rounds):
            for side in sides:
                times[side].append(run(side, text))
        found = {
            "ours": statistics(ours / "train-00000-of-00001.tfrecord"),
            "reference": statistics(theirs),
        }
    report(options, start_up, times, found)


def report(options: argparse.Namespace, start_up, times, found) -> None:
    print(describe_processor())
    print(f"{options.megabytes} MB of {options.text.name}, dupe_factor {options.dupe_factor}")
    rates = {}
    for side, runs in times.items():
        wall, cpu = (float(np.median([run[i] for run in runs])) for i in (0, 1))
        examples = found[side]["examples"]
        rates[side] = (
            examples / wall,
            examples / cpu,
            examples / max(wall - start_up[side][0], 1e-9),
            examples / max(cpu - start_up[side][1], 1e-9),
        )
        print(
            f"{side:>9}: {wall:6.1f} s wall, {cpu:6.1f} s processor, of that start-up "
            f"{start_up[side][0]:.1f} and {start_up[side][1]:.1f}"
        )
    kinds = ("wall", "processor", "wall without start-up", "processor without start-up")
    for kind, ours, theirs in zip(kinds, rates["ours"], rates["reference"], strict=True):
        print(
            f"examples a second of {kind}: ours {ours:,.0f}, reference {theirs:,.0f}, "
            f"ratio {ours / theirs:.1f}"
        )
    print(f"{'':32}{'ours':>12}{'reference':>12}")
    for key, value in found["ours"].items():
        print(f"{key:32}{value:12.4f}{found['reference'][key]:12.4f}")


if __name__ == "__main__":
    main()
