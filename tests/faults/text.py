"""Texts of every kind through tokenizers, tasks and commands: nothing cut, shifted or let in."""

from __future__ import annotations

import importlib
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from faults.campaigns import Case, campaign
from faults.children import in_child
from faults.reading import import_libraries
from faults.text_checks import (
    answers,
    corpora,
    labels,
    long_lines,
    masks,
    questions,
    runs,
    summaries,
    tags,
    tokenizers,
    vectors,
)

ROWS = 150  # of a file
_MODELS = ("answerer", "tagger", "classifier", "filler", "comparer")
_WITH_GRAPHS = {"answerer": "BertForQuestionAnswering", "tagger": "BertForTokenClassification"}


@campaign("texts of every kind: offsets, quoted spans, rows in and out, lines of 10 MB")
def text(folder: Path) -> Iterator[Case]:
    make_models(folder)

    def case(random: Random) -> Counter[str]:
        name = random.choices(list(CHECKS), [check.weight for check in CHECKS.values()])[0]
        return check_texts(folder, name, random)

    yield case


def make_models(folder: Path, kinds: Sequence[str] = _MODELS) -> None:
    """Write models of these kinds, exported and as graphs; this process only imports."""
    import_libraries()
    for name in (
        *("behavior.exported_models", "pipeline.cli.main", "tokenizers", "keras"),
        *(f"pipeline.jobs.{name}" for name in ("scoring", "embedding", "searching", "summarizing")),
        *(f"pipeline.jobs.{name}" for name in ("vocabulary", "pretraining_examples", "finetuning")),
        *("pipeline.jobs.exporting", "apache_beam.runners.portability.fn_api_runner"),
    ):
        importlib.import_module(name)
    in_child(lambda: [_make_model(folder / kind, kind) for kind in kinds])


def _make_model(path: Path, kind: str) -> None:
    from behavior.exported_models import write_kind

    from bert_tf.export.loading import load_trained_model
    from bert_tf.export.saved_model import write_saved_model
    from bert_tf.weights.model_directory import read_model_directory
    from bert_tf.weights.onnx_graph import onnx_model

    directory = read_model_directory(write_kind(path, kind))
    write_saved_model(load_trained_model(directory), path)
    if kind in _WITH_GRAPHS:
        graph = onnx_model(_WITH_GRAPHS[kind], directory.config, directory.tensors)
        path.joinpath("model.onnx").write_bytes(graph.SerializeToString())
    path.joinpath("SHA256SUMS").unlink(missing_ok=True)


def check_texts(folder: Path, name: str, random: Random, rows: int = ROWS) -> Counter[str]:
    """Run a check on invented texts in a child, and count the texts."""
    work = folder / "work"
    work.mkdir()
    try:
        outcomes = in_child(lambda: CHECKS[name].run(folder, work, random, rows))
    finally:
        shutil.rmtree(work)
    return Counter({f"{name}: {outcome}": count for outcome, count in outcomes.items()})


class Check(NamedTuple):
    """A check of `text_checks`, and how often it is drawn relative to the others."""

    run: Callable[[Path, Path, Random, int], Counter[str]]
    weight: int


CHECKS = {
    check.run.__name__: check
    for check in (
        Check(tokenizers, 4),
        Check(questions, 3),
        Check(answers, 3),
        Check(tags, 3),
        Check(masks, 1),
        Check(labels, 1),
        Check(summaries, 2),
        Check(vectors, 2),
        Check(corpora, 3),
        Check(runs, 2),
        Check(long_lines, 1),
    )
}
