"""Accuracy of layouts, documents and sentences on the golden set (`golden_layouts.py`).

    python benchmarks/layouts.py [--faults] [--only NAME]

Prints a row per layout and one per language: the share of cases whose layout is right, and F1 of
the borders of documents and of sentences, in percent. `--faults` prints the cases that are wrong,
with the first borders that are missing or too many.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from golden_layouts import Case, golden_cases

from bert_tf.config.section import build_section
from bert_tf.config.sections import VocabConfig
from pipeline.beam.files import match_files
from pipeline.corpus.documents import DocumentRules, make_block
from pipeline.corpus.readers.formats import look_at_text, make_reader
from pipeline.corpus.readers.splits import WHOLE_FILE

_CONTEXT = 12  # letters and digits on each side by which a border is known
Border = tuple[str, str]


class Score(NamedTuple):
    """How a case was read.

    Attributes:
        layout: value of `CorpusSection.text_layout` that was chosen, several joined by `+`.
        is_right: whether that is an accepted one.
        documents, sentences: F1 of borders, 0 to 1; NaN where sentences are not known.
        missing, extra: borders of sentences.
    """

    layout: str
    is_right: bool
    documents: float
    sentences: float
    missing: list[Border]
    extra: list[Border]


def read_case(case: Case, folder: Path) -> tuple[str, list[list[str]]]:
    """Read a case as `vocab` would; return its layout and the sentences of its documents."""
    for name, text in case.files.items():
        (folder / name).write_text(text, encoding="utf-8", newline="")
    paths = [str(folder / name) for name in sorted(case.files)]
    config = build_section(VocabConfig, {"input": tuple(paths), "output": "unused"})
    layouts = look_at_text(config, match_files(paths)).layouts
    documents = []
    for path in paths:
        reader = make_reader(path, config, layouts).resolved(path)
        for raw in reader.read_split(path, WHOLE_FILE, 1 << 24):
            block = make_block(raw, DocumentRules())
            sentences, bounds = block.sentences.to_pylist(), block.document_offsets.tolist()
            documents += [sentences[bounds[n] : bounds[n + 1]] for n in range(block.num_documents)]
    return "+".join(sorted(set(layouts.values()))), documents


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def borders(texts: Iterable[str]) -> Counter[Border]:
    """Return where texts end: the letters before and after, as white space may change."""
    plain = [each for each in map(_letters, texts) if each]
    following = [*plain[1:], ""]
    return Counter(
        (before[-_CONTEXT:], after[:_CONTEXT])
        for before, after in zip(plain, following, strict=True)
    )


def f1(found: Counter[Border], wanted: Counter[Border]) -> float:
    """Return the harmonic mean of precision and recall."""
    common = (found & wanted).total()
    return 2 * common / max(found.total() + wanted.total(), 1)


def score_case(case: Case) -> Score:
    """Read a case and compare it with the right answer."""
    with tempfile.TemporaryDirectory() as folder:
        layout, documents = read_case(case, Path(folder))
    found = borders(" ".join(each) for each in documents)
    wanted = borders(" ".join(each) for each in case.documents)
    found_sentences = borders(sentence for each in documents for sentence in each)
    wanted_sentences = borders(sentence for each in case.documents for sentence in each)
    return Score(
        layout=layout,
        is_right=layout in case.accepted,
        documents=f1(found, wanted),
        sentences=f1(found_sentences, wanted_sentences) if case.has_sentences else float("nan"),
        missing=list(wanted_sentences - found_sentences),
        extra=list(found_sentences - wanted_sentences),
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--faults", action="store_true", help="print the cases that are wrong")
    parser.add_argument("--only", default="", help="part of the names of cases")
    arguments = parser.parse_args()
    cases = [case for case in golden_cases() if arguments.only in case.name]
    scores = {case.name: score_case(case) for case in cases}
    of_case = {case.name: case for case in cases}
    for name, score in scores.items() if arguments.faults else ():
        is_exact = score.is_right and score.documents == 1 and not score.sentences < 1
        if is_exact:
            continue
        print(f"{name}: {score.layout} {score.documents:.3f} {score.sentences:.3f}")
        print(f"  missing {score.missing[:3]}\n  extra {score.extra[:3]}")
    _print_tables(of_case, scores)


def _print_tables(cases: dict[str, Case], scores: dict[str, Score]) -> None:
    for title in ("layout", "language"):
        groups: dict[str, list[Score]] = {}
        for name, score in scores.items():
            groups.setdefault(getattr(cases[name], title), []).append(score)
        groups["all"] = list(scores.values())
        print(f"| {title} | cases | layout | documents | sentences |\n|---|---|---|---|---|")
        for group, found in groups.items():
            print(f"| `{group}` | {len(found)} | {' | '.join(_means(found))} |")
        print()


def _means(scores: list[Score]) -> list[str]:
    """Return the means of layouts, documents and sentences in percent."""
    columns = (
        [score.is_right for score in scores],
        [score.documents for score in scores],
        [score.sentences for score in scores if not np.isnan(score.sentences)],
    )
    return [f"{100 * np.mean(column):.1f}" if column else "" for column in columns]


if __name__ == "__main__":
    main()
