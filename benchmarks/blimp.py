"""BLiMP: how often a pretrained model finds the grammatical sentence of a minimal pair likelier.

    python benchmarks/blimp.py RUN --data BLiMP.zip --sample 100
    python benchmarks/blimp.py RUN MORE_RUNS … --data blimp/data --results blimp.jsonl
    python benchmarks/blimp.py --text RECORDS --data BLiMP.zip --sample 100

RUN is a run of `bert-pipeline train`, or a folder of weights with a masked-LM head. The data are
the 67 files of Warstadt et al. 2020 ("BLiMP: The Benchmark of Linguistic Minimal Pairs for
English"), as a folder of .jsonl files or the zip they come in; they are read, not copied.
`--sample` takes as many pairs of each file, spread evenly over it; 0 takes all 1,000. Sentences
are compared by pseudo-log-likelihood (Salazar et al. 2020); ties count as half. Prints, for each
phenomenon and for all, the accuracy in percent with its standard error, beside published figures.

`--text` measures n-gram models of the text that a run learned from (`ngrams.py`): the words by
themselves, pairs and triples. RECORDS is the output of `preprocess` with `masking: dynamic`. Each
RUN is then compared with each of them on the same pairs: the difference in percent, its standard
error (of paired differences) and their ratio. A model that knows more than counts is better than
all by five standard errors.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import ngrams
import numpy as np

from bert_tf.base.errors import BertPipelineError
from bert_tf.data.records.dataset_info import PretrainingData
from bert_tf.data.text.host_wordpiece import HostTokenizer
from bert_tf.data.text.vocab_file import read_vocab
from bert_tf.models.heads import BertMaskedLM
from bert_tf.pretraining.minimal_pairs import BAD, GOOD, MinimalPairs, PairJudge, right_fractions
from bert_tf.weights.model_directory import load_weights, read_model_directory
from pipeline.outputs.manifest import read_manifest

# Accuracy in percent over all 67 files: of the paper (5-gram), and of masked language models of
# 10 M and 100 M words and DistilBERT, scored as here.
PUBLISHED = (
    ("chance", 50.0),
    ("5-gram", 61.0),
    ("masked LM, 10 M words", 62.7),
    ("masked LM, 100 M words", 72.6),
    ("DistilBERT", 78.3),
)
_PHENOMENON = "linguistics_term"
_NGRAMS = {"unigram": 1, "bigram": 2, "trigram": 3}
_TIE = 1e-9  # nats: sums of the same terms in another order differ by less


class Pair(NamedTuple):
    """A pair, and the phenomenon that it tests."""

    phenomenon: str
    file: str
    good: str
    bad: str


def read_files(data: Path) -> Iterator[tuple[str, str]]:
    """Yield name and content of each .jsonl file of a folder or zip, by name."""
    if data.is_dir():
        for path in sorted(data.rglob("*.jsonl")):
            yield path.stem, path.read_text(encoding="utf-8")
        return
    with zipfile.ZipFile(data) as archive:
        for name in sorted(archive.namelist()):
            if name.endswith(".jsonl") and not Path(name).name.startswith("."):
                with io.TextIOWrapper(archive.open(name), encoding="utf-8") as file:
                    yield Path(name).stem, file.read()


def read_pairs(data: Path, sample: int) -> list[Pair]:
    """Read the pairs of all files, `sample` of each, spread evenly; all for 0."""
    pairs = []
    for name, content in read_files(data):
        rows = [json.loads(line) for line in content.splitlines() if line.strip()]
        if sample and sample < len(rows):
            chosen = np.linspace(0, len(rows) - 1, sample).round().astype(int)
            rows = [rows[number] for number in chosen.tolist()]
        pairs += [Pair(row[_PHENOMENON], name, row[GOOD], row[BAD]) for row in rows]
    if not pairs:
        sys.exit(f"error: {data}: has no .jsonl file; give the folder or zip of BLiMP")
    return pairs


def judged(run: str, pairs: list[Pair]) -> np.ndarray:
    """Return 1, 0.5 or 0 for each pair, by a run's best model."""
    directory = read_model_directory(run)
    model = BertMaskedLM(directory.config, dtype="float32")
    model.build_weights()
    missing = load_weights(model, directory)
    if missing:
        sys.exit(f"error: {run}: has no masked-LM head ({missing[0]})")
    judge = PairJudge(
        MinimalPairs(
            source="BLiMP",
            good=[pair.good for pair in pairs],
            bad=[pair.bad for pair in pairs],
            lines=list(range(1, len(pairs) + 1)),
        ),
        model=model,
        tokenizer=HostTokenizer(directory.vocab, lowercase=directory.lowercase),
    )
    return right_fractions(judge.differences())


def judged_by_ngrams(records: str, pairs: list[Pair]) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the name of each n-gram model of the records, and 1, 0.5 or 0 for each pair."""
    data = PretrainingData.from_manifest(records, read_manifest(records))
    vocab = read_vocab(Path(records) / "vocab.txt")
    rows = ngrams.unmasked_ids(data)
    tokenizer = HostTokenizer(vocab, lowercase=data.lowercase)
    sides = []
    for sentences in ([pair.good for pair in pairs], [pair.bad for pair in pairs]):
        ids, offsets = tokenizer.tokenize_texts(sentences)
        sides.append(np.split(ids, offsets[1:-1]))
    history = np.array([vocab.index("[SEP]"), vocab.index("[CLS]")])
    for name, order in _NGRAMS.items():
        model = ngrams.NgramModel(rows[rows != 0], vocab_size=len(vocab), order=order)
        good, bad = (model.likelihoods(side, history) for side in sides)
        differences = good - bad
        yield name, right_fractions(np.where(abs(differences) < _TIE, 0, differences))


def accuracy(right: np.ndarray) -> tuple[float, float]:
    """Return the accuracy in percent, and its standard error."""
    spread = right.std(ddof=1) if len(right) > 1 else 0.0
    return 100 * float(right.mean()), 100 * float(spread / np.sqrt(len(right)))


def results_of(pairs: list[Pair], right: np.ndarray) -> dict[str, tuple[float, float, int]]:
    """Return accuracy, standard error and pairs of each phenomenon, and of `all` at the end."""
    names = np.array([pair.phenomenon for pair in pairs])
    found = {}
    for name in sorted(set(names.tolist())):
        chosen = right[names == name]
        found[name] = (*accuracy(chosen), len(chosen))
    found["all"] = (*accuracy(right), len(right))
    return found


def compared(right: np.ndarray, others_right: np.ndarray) -> tuple[float, float, float]:
    """Return by how much one model is right more often than another on the same pairs.

    Args:
        right: 1, 0.5 or 0 for each pair, of the one model, float64 [pairs].
        others_right: those of the other model.

    Returns:
        The difference in percent, its standard error, and the difference in standard errors, 0 if
        the models agree on all pairs.
    """
    difference, error = accuracy(right - others_right)
    return difference, error, difference / error if error else 0.0


def show(run: str, results: dict[str, Any]) -> None:
    """Print the table of a run."""
    print(f"\n{run}")
    print(f"{'phenomenon':<28} {'accuracy':>8} {'error':>6} {'pairs':>7}")
    for name, (percent, error, count) in results.items():
        print(f"{name:<28} {percent:>8.1f} {error:>6.1f} {count:>7,}")
    percent, error, _ = results["all"]
    rows = [*PUBLISHED, (f"this model (± {error:.1f})", percent)]
    print("\nall phenomena, beside published figures")
    for name, value in sorted(rows, key=lambda row: row[1]):
        print(f"{name:<28} {value:>8.1f}")


def show_differences(runs: list[str], all_right: dict[str, np.ndarray]) -> None:
    """Print how each run differs from each n-gram model."""
    for run in runs:
        for name in (name for name in all_right if name not in runs):
            difference, error, errors = compared(all_right[run], all_right[name])
            print(f"{run} - {name}: {difference:+.1f} ± {error:.1f} ({errors:.1f} errors)")


def main() -> None:
    """Measure and print each run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="*", metavar="RUN", help="run or folder of weights")
    parser.add_argument(
        "--text", metavar="RECORDS", help="records, for n-gram models of their text"
    )
    parser.add_argument("--data", type=Path, required=True, help="folder or zip of BLiMP")
    parser.add_argument("--sample", type=int, default=0, help="pairs of each file (0: all)")
    parser.add_argument("--results", type=Path, help="JSON lines to append the results to")
    options = parser.parse_args()
    if not options.data.exists():
        sys.exit(f"error: --data {options.data}: no such folder or file")
    if not options.runs and options.text is None:
        sys.exit("error: give a RUN, or --text")
    pairs = read_pairs(options.data, options.sample)
    try:
        all_right = {}
        for name, right in all_judged(options, pairs):
            all_right[name] = right
            results = results_of(pairs, right)
            show(name, results)
            if options.results is not None:
                line = {"run": name, "sample": options.sample, "results": results}
                with options.results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
        show_differences(options.runs, all_right)
    except BertPipelineError as error:
        sys.exit(f"error: {error}")


def all_judged(options: argparse.Namespace, pairs: list[Pair]) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the name of each model that was asked for, and 1, 0.5 or 0 for each pair."""
    for run in options.runs:
        yield run, judged(run, pairs)
    if options.text is not None:
        for name, right in judged_by_ngrams(options.text, pairs):
            yield f"{name} of {options.text}", right


if __name__ == "__main__":
    main()
