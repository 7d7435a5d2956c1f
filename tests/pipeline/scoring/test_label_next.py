"""Rows to label next: uncertain, unlike each other, the same in any blocks, in bounded memory."""

import json

import numpy as np
import pytest

from bert_tf.base.errors import UsageError
from bert_tf.data.tables.places import Place
from bert_tf.tasks.registry import TASKS
from pipeline.scoring.label_next import (
    MarkedRows,
    candidates_for,
    choose_marked,
    choose_rows,
    rewrite_parts,
)


def marks(most: int) -> MarkedRows:
    return MarkedRows.least_certain_of(TASKS["classification"], most, flag="--f", model="m")


def write_blocks(folder, probabilities, texts, sizes, *, most):
    """Write parts of blocks of these sizes, every third row with a line end in it."""
    first, parts = 0, []
    for block, size in enumerate(sizes):
        rows = slice(first, first + size)
        lines = [f'"{text}\n"' if n % 3 == 0 else text for n, text in enumerate(texts[rows])]
        part = folder / f"part-{len(sizes)}-{block}.rows"
        part.write_text("".join(f"{line}\n" for line in lines))
        predicted = {"probabilities": probabilities[rows]}
        marks(most).write(
            part,
            lines,
            range(size),
            predicted,
            {"text": texts[rows]},
            [Place(line) for line in range(1, size + 1)],
        )
        parts.append((0, block, part))
        first += size
    return parts


def sample(rows: int):
    rng = np.random.default_rng(0)
    return rng.dirichlet([1.0, 1.0, 1.0], rows), [f"text é {n}" for n in range(rows)]


@pytest.mark.parametrize("sizes", [[100], [30, 70], [1] * 100])
def test_the_least_certain_rows_do_not_depend_on_blocks(tmp_path, sizes):
    probabilities, texts = sample(100)
    parts = write_blocks(tmp_path, probabilities, texts, sizes, most=10)
    found = marks(10).read(parts)
    ordered = np.sort(probabilities, axis=1)
    margins = np.round((ordered[:, -1] - ordered[:, -2]) * 10_000)
    expected = [texts[row] for row in np.argsort(margins, kind="stable")[:10]]
    assert [row.texts["text"] for row in found] == expected
    for row in found:
        content = parts[row.block][2].read_bytes()[row.begin : row.end].decode()
        assert content.strip('"\n') == row.texts["text"]


def test_each_block_keeps_no_more_than_is_asked_for(tmp_path):
    probabilities, texts = sample(100)
    ((_, _, part),) = write_blocks(tmp_path, probabilities, texts, [100], most=7)
    assert len(json.loads(part.with_suffix(".next.json").read_text())) == 7


def test_the_first_rows_are_marked_without_probabilities(tmp_path):
    part = tmp_path / "part-0.rows"
    part.write_text("a\nb\nc\n")
    first = MarkedRows(most=2)
    places = [Place(2), Place(4, 3, "T-2"), Place(5, 4)]
    first.write(part, ["a", "b", "c"], [0, 1, 2], {}, {"text": ["a", "b", "c"]}, places)
    assert [row.place for row in first.read([(0, 0, part)])] == places[:2]


def test_copies_of_an_uncertain_text_are_chosen_once():
    rng = np.random.default_rng(1)
    groups = rng.normal(size=(8, 16))
    vectors = np.repeat(groups, 50, axis=0) + 0.01 * rng.normal(size=(400, 16))
    margins = np.repeat([0.0, *[0.3] * 7], 50)
    chosen = choose_rows(margins, vectors, 8)
    assert sorted(row // 50 for row in chosen) == list(range(8))
    assert len(set(choose_rows(margins, vectors, 400))) == 400


def test_choices_are_those_of_the_plain_greedy_algorithm():
    rng = np.random.default_rng(2)
    vectors, margins = rng.normal(size=(300, 8)), rng.random(300)
    directions = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    nearest, expected = np.zeros(300), []
    for _ in range(40):
        added = np.maximum(directions @ directions.T - nearest, 0) @ (1 - margins)
        added = np.round(added, 3)
        added[expected] = -1
        expected.append(int(added.argmax()))
        nearest = np.maximum(nearest, directions @ directions[expected[-1]])
    assert choose_rows(margins, vectors, 40) == expected


def test_all_rows_are_chosen_where_there_are_no_more(tmp_path):
    probabilities, texts = sample(5)
    parts = write_blocks(tmp_path, probabilities, texts, [5], most=candidates_for(9))
    assert len(choose_marked(marks(1000).read(parts), 9, lambda texts: np.eye(5))) == 5


@pytest.mark.parametrize("only", [True, False])
def test_parts_are_rewritten_by_bytes(tmp_path, only):
    probabilities, texts = sample(20)
    parts = write_blocks(tmp_path, probabilities, texts, [12, 8], most=3)
    before = [part.read_text() for _, _, part in parts]
    found = marks(3).read(parts)
    part_of = {(table, block): part for table, block, part in parts}
    new = [(row, b"new\n") for row in found]
    rewrite_parts(new, lambda *where: part_of[where], only=only, all_parts=part_of)
    after = "".join(part.read_text() for _, _, part in parts)
    assert after.count("new\n") == 3
    assert len(after) == (
        12
        if only
        else 12
        + sum(map(len, before))
        - sum(len(before[row.block].encode()[row.begin : row.end].decode()) for row in found)
    )


def test_tasks_without_probabilities_of_labels_are_refused():
    with pytest.raises(UsageError, match="--label-next does not apply to m: regression predicts"):
        MarkedRows.least_certain_of(TASKS["regression"], 1, flag="--label-next", model="m")
