"""Examples per second of making pretraining data: ours against google-research/bert's script.

    python benchmarks/pretraining_examples.py --reference create_pretraining_data.py \
        --text corpus.txt --vocab vocab.txt [--megabytes 60] [--less 3] [--dupe-factor 5]

`--reference` is the script of github.com/google-research/bert, with `tokenization.py` beside it.
Both get the same first megabytes of the same text (one sentence per line, blank lines between
documents) and run as whole processes, in turns; a text shorter than that is repeated with its
sentences shuffled. Rates are given for the whole command, and for the whole command less one over
fewer megabytes, which leaves starting up out. Afterwards the examples of the smaller run
are read and their statistics printed side by side: ours as mean and standard deviation over
`--seeds` seeds, which is the sampling error that the reference's numbers have too (short sequences
are drawn per document, so it is larger than the number of examples suggests).
The reference runs in a temporary folder, with `tensorflow` replaced by its `compat.v1`.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
from commands import bert_pipeline, timed

from bert_tf.base.processor import describe_processor
from bert_tf.data.records.parsing import feature_spec

LENGTH, PREDICTIONS = 128, 20
SHARD = "train-00000-of-00001.tfrecord"


def first_documents(path: Path, size: float) -> str:
    """About the first `size` bytes of a text, whole documents.

    Where it is shorter, it continues with its documents' sentences in another order.
    """
    originals = [d.strip("\n") for d in path.read_text(encoding="utf-8").split("\n\n")]
    generator = np.random.default_rng(0)
    documents: list[str] = []
    total = 0
    while total < size:
        for document in originals:
            if documents and len(documents) >= len(originals):
                document = "\n".join(generator.permutation(document.split("\n")))
            documents.append(document)
            total += len(document.encode("utf-8"))
            if total >= size:
                break
    return "\n\n".join(documents) + "\n"


def patched_reference(reference: Path, folder: Path) -> Path:
    """Return a copy of the script and its tokenizer that runs on TensorFlow 2."""
    for name in (reference.name, "tokenization.py"):
        text = (reference.parent / name).read_text(encoding="utf-8")
        text = text.replace("import tensorflow as tf", "import tensorflow.compat.v1 as tf")
        (folder / name).write_text(text, encoding="utf-8")
    return folder / reference.name


def our_command(
    text: Path, vocab: Path, output: Path, dupe_factor: int, seed: int = 12345
) -> list[str]:
    return bert_pipeline(
        "preprocess", "--overwrite", "--input", text,
        "--set", "preprocess.text_layout=sentences", "--vocab", vocab, "--output", output,
        "--eval-fraction", 0, "--num-shards", 1, "--dupe-factor", dupe_factor, "--seed", seed,
    )  # fmt: skip


def their_command(
    script: Path, text: Path, vocab: Path, output: Path, dupe_factor: int
) -> list[str]:
    return [
        sys.executable, str(script), f"--input_file={text}", f"--output_file={output}",
        f"--vocab_file={vocab}", f"--dupe_factor={dupe_factor}", f"--max_seq_length={LENGTH}",
        f"--max_predictions_per_seq={PREDICTIONS}",
    ]  # fmt: skip


def statistics(path: Path) -> dict[str, float]:
    """Return statistics of the records of a file."""
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
        "tokens per example": lengths.mean(),
        "  standard deviation": lengths.std(),
        "  fraction of full examples": (lengths == LENGTH).mean(),
        "tokens of the first segment": (lengths - second - 3).mean(),
        "tokens of the second segment": second.mean(),
        "targets per example": weights.sum(axis=1).mean(),
        "targets per token": weights.sum() / lengths.sum(),
        "fraction of [MASK]": (now == mask_id).mean(),
        "fraction of kept tokens": kept.mean(),
        "fraction of random tokens": ((now != mask_id) & ~kept).mean(),
        "fraction of random next": features["next_sentence_labels"].mean(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--vocab", type=Path, required=True)
    parser.add_argument("--megabytes", type=float, default=60.0)
    parser.add_argument("--less", type=float, default=3.0, help="megabytes of the smaller run")
    parser.add_argument("--dupe-factor", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=8)
    options = parser.parse_args()
    sizes = (options.less, options.megabytes)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script = patched_reference(options.reference, folder)
        vocab = options.vocab.resolve()
        outputs = {"ours": folder / "ours", "reference": folder / "theirs.tfrecord"}
        files = {"ours": outputs["ours"] / SHARD, "reference": outputs["reference"]}
        texts = {}
        for size in (0.02, *sizes):
            texts[size] = folder / f"{size}.txt"
            texts[size].write_text(first_documents(options.text, size * 1e6), encoding="utf-8")
        # Compiles our kernels, which is done once an installation.
        timed(our_command(texts[0.02], vocab, outputs["ours"], options.dupe_factor))
        measured: dict[str, dict[float, tuple[float, float, int]]] = {"ours": {}, "reference": {}}
        for size in sizes:
            for side in measured:
                arguments = (texts[size], vocab, outputs[side], options.dupe_factor)
                if side == "ours":
                    command = our_command(*arguments)
                else:
                    command = their_command(script, *arguments)
                measured[side][size] = (*timed(command), count_examples(files[side]))
                if side == "reference" and size == options.less:
                    theirs = statistics(files[side])
        ours = []
        for seed in range(options.seeds):
            arguments = (texts[options.less], vocab, outputs["ours"], options.dupe_factor)
            timed(our_command(*arguments, seed=seed))
            ours.append(statistics(files["ours"]))
    print(describe_processor())
    report_speed(options, measured)
    report_statistics(ours, theirs)


def count_examples(path: Path) -> int:
    return sum(len(batch) for batch in tf.data.TFRecordDataset(str(path)).batch(10_000))


def report_speed(options: argparse.Namespace, measured) -> None:
    print(
        f"{options.megabytes:g} and {options.less:g} MB of {options.text.name}, dupe_factor "
        f"{options.dupe_factor}, length {LENGTH}"
    )
    rates: dict[str, list[float]] = {}
    for side, runs in measured.items():
        (less_wall, less_cpu, less), (wall, cpu, examples) = runs.values()
        rates[side] = [
            examples / wall,
            (examples - less) / (wall - less_wall),
            (examples - less) / (cpu - less_cpu),
        ]
        print(
            f"{side:>9}: {wall:7.1f} s ({cpu:.1f} s of processor) for {examples:,} examples, "
            f"{less_wall:.1f} s ({less_cpu:.1f} s) for {less:,}"
        )
    kinds = ("whole command", "without start-up", "without start-up, per second of processor")
    for kind, ours, theirs in zip(kinds, rates["ours"], rates["reference"], strict=True):
        print(
            f"examples/s, {kind}: ours {ours:,.0f}, reference {theirs:,.0f}, "
            f"ratio {ours / theirs:.1f}"
        )


def report_statistics(ours: list[dict[str, float]], theirs: dict[str, float]) -> None:
    print(f"{'':32}{'ours':>12}{'deviation':>12}{'reference':>12}{'deviations':>12}")
    for key, value in theirs.items():
        values = np.array([one[key] for one in ours])
        error = values.std(ddof=1) * np.sqrt(1 + 1 / len(values))
        distance = (value - values.mean()) / error if error else 0.0
        print(f"{key:32}{values.mean():12.4f}{error:12.4f}{value:12.4f}{distance:12.2f}")


if __name__ == "__main__":
    main()
