"""The data sets and settings of benchmarks/finetuning.py."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np

from bert_tf.tasks.question_answering.metrics import (
    SpanScores,
    answer_metrics,
    best_threshold,
    question_scores,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataSet:
    """Rows and hyperparameters, the same on both sides.

    Attributes:
        name: of the data set.
        task: of `bert-pipeline finetune`.
        train, eval: files.
        metric: in metrics.jsonl, of the evaluation rows.
        scale: factor from the metric to points of 100.
        rows: training rows (0: all).
    """

    name: str
    task: str
    train: str
    eval: str
    metric: str
    scale: float = 100.0
    text_column: str | None = None
    text_pair_column: str | None = None
    label_column: str | None = None
    rows: int = 0
    epochs: float = 3.0
    batch_size: int = 32
    learning_rate: float = 5e-5
    max_seq_length: int = 128


def data_sets(folder: Path) -> dict[str, DataSet]:
    """Return all of them by name, of a folder with `glue/`, `trec/`, `wnut17/` and `squad/`."""
    trec = DataSet(
        name="TREC",
        task="classification",
        train=str(folder / "trec/train.tsv"),
        eval=str(folder / "trec/test.tsv"),
        metric="accuracy",
        text_column="text",
        label_column="coarse",
    )
    wnut = DataSet(
        name="WNUT-17",
        task="tagging",
        train=str(folder / "wnut17/train.conll"),
        eval=str(folder / "wnut17/dev.conll"),
        metric="f1",
    )
    sst, *others, sts = _glue_sets(folder / "glue")
    listed = (sst, trec, *others, sts, wnut, *_squad_sets(folder / "squad"))
    return {data_set.name: data_set for data_set in listed}


def _glue_sets(glue: Path) -> list[DataSet]:
    """Return SST-2, MRPC, RTE (twice) and STS-B, in this order."""
    rte = DataSet(
        name="RTE",
        task="classification",
        train=str(glue / "RTE/train.tsv"),
        eval=str(glue / "RTE/dev.tsv"),
        metric="accuracy",
        label_column="label",
        max_seq_length=256,
        text_column="sentence1",
        text_pair_column="sentence2",
    )
    return [
        DataSet(
            name="SST-2",
            task="classification",
            train=str(glue / "SST-2/train.tsv"),
            eval=str(glue / "SST-2/dev.tsv"),
            metric="accuracy",
            text_column="sentence",
            label_column="label",
            rows=8000,
            epochs=1.0,
        ),
        DataSet(
            name="MRPC",
            task="classification",
            train=str(glue / "MRPC/train.tsv"),
            eval=str(glue / "MRPC/dev.tsv"),
            metric="accuracy",
            text_column="#1 String",
            text_pair_column="#2 String",
            label_column="Quality",
        ),
        rte,
        # As configs/tasks/rte.yaml.
        dataclasses.replace(
            rte, name="RTE, 10 epochs", epochs=10.0, batch_size=16, learning_rate=2e-5
        ),
        DataSet(
            name="STS-B",
            task="regression",
            train=str(glue / "STS-B/train.tsv"),
            eval=str(glue / "STS-B/dev.tsv"),
            metric="spearman",
            label_column="score",
            text_column="sentence1",
            text_pair_column="sentence2",
        ),
    ]


def _squad_sets(squad: Path) -> list[DataSet]:
    """Return the parts of SQuAD 1.1 and 2.0."""
    return [
        DataSet(
            name=f"SQuAD {version}",
            task="qa",
            train=str(squad / f"train-v{version}-part.json"),
            eval=str(squad / f"dev-v{version}-part.json"),
            metric=metric,
            scale=1.0,
            epochs=1.0,
            batch_size=16,
            learning_rate=1e-4,
            max_seq_length=384,
        )
        for version, metric in (("1.1", "f1"), ("2.0", "best_f1"))
    ]


def f1_of_answers(path: str, answers: dict[str, tuple[str, float]], *, tuned: bool) -> float:
    """F1 of answers to SQuAD's questions, in points.

    Args:
        path: SQuAD's JSON.
        answers: the best span and the null odds of each question, by id.
        tuned: with the threshold of the null odds that is best for F1, as of SQuAD 2.0.
    """
    golds: dict[str, list[str]] = {}
    for article in json.loads(Path(path).read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                golds[question["id"]] = [answer["text"] for answer in question["answers"]]
    texts = [answers[name][0] for name in golds]
    listed = list(golds.values())
    if not tuned:
        return answer_metrics(texts, listed, version_2=False)["f1"]
    exact, f1 = question_scores(texts, listed, version_2=True)
    spans = SpanScores(
        is_text=np.array([bool(text) for text in texts]),
        exact_match=exact,
        f1=f1,
        null_odds=np.array([answers[name][1] for name in golds]),
        has_answer=np.array([bool(gold) for gold in listed]),
    )
    return best_threshold(spans, f1).percentage
