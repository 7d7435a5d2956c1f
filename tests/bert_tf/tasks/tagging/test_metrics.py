"""Metrics of tags against seqeval's, and by their definition."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from behavior.recomputed_metrics import check_metrics_of_predictions
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score

from bert_tf.tasks.tagging.gold import learned_tags
from bert_tf.tasks.tagging.host import encode_words, prediction_columns
from bert_tf.tasks.tagging.metrics import TaggingScores, tagging_results
from bert_tf.tasks.tagging.options import TAGGING
from bert_tf.tasks.tagging.rows import TagColumns
from bert_tf.tasks.tagging.schemes import scheme_tags
from bert_tf.tasks.tagging.tagged_texts import TaggedTexts, read_tagged_texts
from bert_tf.tasks.tagging.words import TaggedWords, TextWords, joined_words

GOLDEN = Path(__file__).parents[3] / "golden" / "entity_metrics.json"
CASES = json.loads(GOLDEN.read_text())
POS = ["NN", "VB", "DT", "."]


def scored(gold, predicted, scheme):
    """Measures tags of rows of words."""
    words = TextWords.of_rows([["x"] * len(row) for row in gold])
    found = (
        TaggedWords.gold(words, [tag for row in rows for tag in row]) for rows in (gold, predicted)
    )
    return TaggingScores(*found, scheme)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["scheme"])
def test_entity_metrics_are_those_of_seqeval(case):
    gold, predicted = ([row.split() for row in case[name]] for name in ("gold", "predicted"))
    found = scored(gold, predicted, case["scheme"]).metrics()
    assert found == pytest.approx(case["expected"], abs=1e-12)


@given(st.lists(st.tuples(st.sampled_from(POS), st.sampled_from(POS)), min_size=1, max_size=30))
def test_metrics_of_plain_tags_are_those_of_scikit_learn(pairs):
    gold, predicted = map(list, zip(*pairs, strict=True))
    found = scored([gold], [predicted], "plain").metrics()
    assert found["f1"] == pytest.approx(accuracy_score(gold, predicted))
    assert found["accuracy"] == found["f1"] == found["precision"] == found["recall"]
    assert found["macro_f1"] == pytest.approx(f1_score(gold, predicted, average="macro"))
    assert "strict_f1" not in found


@pytest.mark.parametrize("scheme", ["bio", "plain"])
def test_without_entities_and_without_words_everything_is_defined(scheme):
    nothing = scored([], [], scheme).metrics()
    outside = scored([["O", "O"]], [["O", "O"]], scheme).metrics()
    assert nothing["f1"] == nothing["accuracy"] == outside["f1"] == outside["macro_f1"] == 0.0
    assert outside["accuracy"] == 1.0


TAGS = st.sampled_from(["O", "B-a", "I-a", "B-b", "I-b"])


@given(texts=st.lists(st.lists(st.tuples(TAGS, TAGS), min_size=1, max_size=4), min_size=2))
def test_errors_are_those_of_leaving_out_each_text(texts):
    gold, predicted = ([[pair[side] for pair in text] for text in texts] for side in (0, 1))
    scores = scored(gold, predicted, "bio")
    errors = scores.errors(len(texts))
    left = [
        scored(gold[:text] + gold[text + 1 :], predicted[:text] + predicted[text + 1 :], "bio")
        for text in range(len(texts))
    ]
    if len(texts) > 50:
        return
    for name in ("f1", "macro_f1", "accuracy"):
        values = np.array([each.metrics()[name] for each in left])
        expected = np.sqrt((len(texts) - 1) / len(texts) * np.square(values - values.mean()).sum())
        if expected > 1e-6:
            assert errors[name] == pytest.approx(expected), name
        else:
            assert errors[name] >= 0


def test_the_report_has_each_label():
    gold = ["B-per", "O", "B-loc", "I-loc", "B-per"]
    predicted = ["B-per", "B-org", "B-loc", "O", "B-per"]
    report = scored([gold], [predicted], "bio").report()
    assert report.details == {
        "labels": {
            "loc": {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 1},
            "org": {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 0},
            "per": {"precision": 1.0, "recall": 1.0, "f1": 1.0, "support": 2},
        }
    }
    assert report.lines[0].split() == ["label", "precision", "recall", "f1", "support"]
    assert report.lines[3].split() == ["per", "1.0000", "1.0000", "1.0000", "2"]


SCHEMES = st.sampled_from(["bio", "bilou", "iobes", "plain"])
LETTERS = [*"ad in,.'", "北", "\n", "\u200b", "\u0301", "é"]
WORDS = st.lists(st.text(st.sampled_from(LETTERS), max_size=5), min_size=1, max_size=6)


@st.composite
def labeled_texts(draw, scheme, has_words):
    """Rows of words with any tags, or of texts with any spans as entities."""
    rows = draw(st.lists(WORDS, min_size=1, max_size=4))
    words = TextWords.of_rows(rows)
    tags = draw_tags(draw, len(words.starts), ["O", *scheme_tags(["x", "y"], scheme)])
    if not has_words:
        marks = []
        for row, words_of_row in enumerate(rows):
            places = st.integers(0, len(" ".join(words_of_row)))
            borders = sorted(draw(st.sets(places, max_size=6)))
            marks += [(row, *span) for span in zip(borders[::2], borders[1::2], strict=False)]
        owners, starts, ends = np.array(marks, np.int64).reshape(-1, 3).T
        counts = np.bincount(owners, minlength=len(rows))
        words = TextWords(offsets=np.cumsum([0, *counts]), starts=starts, ends=ends)
        tags = draw_tags(draw, len(starts), ["x", "y"])
    return TaggedTexts(
        source="a.jsonl",
        rejects=[],
        lines=list(range(1, len(rows) + 1)),
        texts=[" ".join(row) for row in rows],
        has_words=has_words,
        offsets=words.offsets,
        starts=words.starts,
        ends=words.ends,
        tags=tags,
        mark_lines=[1] * len(tags),
    )


def draw_tags(draw, count, tags):
    return draw(st.lists(st.sampled_from(tags), min_size=count, max_size=count))


@pytest.mark.slow
@given(scheme=SCHEMES, has_words=st.booleans(), data=st.data())
def test_metrics_follow_from_the_rows_of_any_predictions(pieces, scheme, has_words, data):
    """Also where words have no token, entities end in words and predicted tags are malformed."""
    source = data.draw(labeled_texts(scheme, has_words))
    encoded = encode_words(pieces, source.texts, max_seq_length=64, stride=32)
    tags = ["O", *scheme_tags(["x", "y"], scheme)]
    found = TaggedWords.gold(encoded.words, draw_tags(data.draw, len(encoded.words.starts), tags))
    columns = prediction_columns(source.texts, joined_words(source.texts, found, scheme), scheme)
    results = tagging_results(source, columns, scheme)
    task = SimpleNamespace(declaration=TAGGING, scheme=scheme)
    check_metrics_of_predictions(task, results)
    text_of = {row["line"]: row["text"] for row in results.predictions}
    for row in results.predictions:
        for entity in row["predicted_entities"]:
            assert entity["text"] == text_of[row["line"]][entity["start"] : entity["end"]]


@given(scheme=SCHEMES, data=st.data())
def test_words_that_are_predicted_as_trained_are_right(pieces, scheme, data):
    """The best possible predictions are those that training teaches."""
    source = data.draw(labeled_texts(scheme, has_words=True))
    encoded = encode_words(pieces, source.texts, max_seq_length=64, stride=32)
    learned = learned_tags(source, encoded.words, scheme)
    assert learned.chosen.tolist() == list(range(len(encoded.words.starts)))
    found = TaggedWords.gold(encoded.words, learned.tags)
    columns = prediction_columns(source.texts, joined_words(source.texts, found, scheme), scheme)
    results = tagging_results(source, columns, scheme)
    for row in results.predictions:
        tags = [{**word, "score": 1.0} for word in row["tags"]]
        assert row["predicted_tags"] == tags
        assert [{**each, "text": None, "score": None} for each in row["entities"]] == [
            {**each, "text": None, "score": None} for each in row["predicted_entities"]
        ]


def test_entities_that_end_inside_words_are_right_by_words_only(pieces, tmp_path):
    """The model can only find whole words, which `offset_f1` says."""
    path = tmp_path / "a.jsonl"
    rows = [("영희가 in London", [[0, 2, "per"], [7, 13, "loc"]]), ("in Ada", [[3, 6, "per"]])]
    path.write_text(
        "".join(json.dumps({"text": text, "entities": spans}) + "\n" for text, spans in rows)
    )
    source = read_tagged_texts(
        path, TagColumns(text="text", tokens=None, tags=None, entities="entities")
    )
    encoded = encode_words(pieces, source.texts, max_seq_length=64, stride=32)
    tags = ["B-per", "O", "B-loc", "O", "B-per"]
    columns = prediction_columns(source.texts, TaggedWords.gold(encoded.words, tags), "bio")
    results = tagging_results(source, columns, "bio")
    assert results.metrics["f1"] == 1.0
    assert results.metrics["offset_f1"] == pytest.approx(2 / 3)
    first = results.predictions[0]
    assert [each["end"] for each in first["entities"]] == [3, 13]
    assert [each["end"] for each in first["annotated_entities"]] == [2, 13]
