"""Megabytes per second from text to examples: ours against a HuggingFace `datasets` map.

    python benchmarks/grouped_texts.py --huggingface-python PATH --text corpus.txt --vocab vocab.txt

Theirs tokenizes and cuts into blocks of 128 tokens, the first part of the work; ours is all of
`preprocess`: sentences, pairs, masks, records, one pass (dupe factor 1). Both run as whole commands
on two processes, in turns, over more and over fewer megabytes; the difference leaves
the time of starting up out.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from statistics import median

from commands import bert_pipeline, timed

from bert_tf.base.processor import describe_processor

FOLDER = Path(__file__).parent


def our_command(text: Path, vocab: str, output: Path, processes: int) -> list[str]:
    return bert_pipeline(
        "preprocess", "--input", text, "--vocab", vocab, "--output", output,
        "--dupe-factor", 1, "--workers", processes,
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--huggingface-python", required=True)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--vocab", type=Path, required=True)
    parser.add_argument("--megabytes", type=float, nargs=2, default=(3.0, 30.0))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    content = options.text.read_bytes()
    while len(content) < max(options.megabytes) * 1e6:
        content += content
    vocab = str(options.vocab.resolve())
    times: dict[tuple[str, float], list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(options.rounds + 1):
            for size in options.megabytes:
                text = folder / f"{number}-{size}.txt"
                end = content.index(b"\n", int(size * 1e6))
                # A line of its own, since `datasets` keeps files that it has seen before.
                text.write_bytes(b"Round %d begins here.\n" % number + content[:end])
                output = folder / f"ours-{number}-{size}"
                ours, _ = timed(our_command(text, vocab, output, options.processes))
                script = str(FOLDER / "grouped_texts_huggingface.py")
                arguments = [str(text), vocab, str(options.processes), str(folder / "cache")]
                theirs, _ = timed([options.huggingface_python, script, *arguments])
                if number:  # the first round compiles our kernels and warms the disk
                    times.setdefault(("ours", size), []).append(ours)
                    times.setdefault(("HuggingFace", size), []).append(theirs)
    print(f"processor: {describe_processor()}")
    less, more = options.megabytes
    speeds = {}
    for side in ("ours", "HuggingFace"):
        small, large = (median(times[side, size]) for size in (less, more))
        speeds[side] = (more - less) / (large - small)
        print(
            f"{side:>12}: {small:6.1f} s for {less:g} MB, {large:6.1f} s for {more:g} MB: "
            f"{speeds[side]:.2f} MB/s without start-up"
        )
    print(f"ratio {speeds['ours'] / speeds['HuggingFace']:.1f}")


if __name__ == "__main__":
    main()
