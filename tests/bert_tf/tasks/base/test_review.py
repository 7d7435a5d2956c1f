"""The review of rows that every task shows, and the faults it finds in them."""

import io
import json

import pytest

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, UsageError
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.tasks.base.review import review_rows
from bert_tf.tasks.registry import task_class

CONTEXT = "lima is the capital of peru ."
ROWS = {
    "classification": {"text": "good film", "label": "good"},
    "regression": {"text": "good film", "label": 0.5},
    "multilabel": {"text": "good film", "label": ["good", "film"]},
    "similarity": {"anchor": "good film", "positive": "a fine film"},
    "tagging": {"tokens": ["lima", "is", "red"], "tags": ["B-LOC", "O", "O"]},
    "qa": {"question": "what ?", "context": CONTEXT, "answer": "lima", "answer_start": 0},
    "multiple-choice": {"context": "lima is", "choices": ["red", "a city"], "label": 1},
}
OTHERS = {
    "classification": {"label": "bad"},
    "regression": {"label": 1.5},
    "multilabel": {"label": ["bad"]},
}


@pytest.fixture
def review(small_config, tmp_path):
    """Read rows as training rows of a task, and return the lines of their review."""

    def run(task, rows, name="train.jsonl", **values):
        path = tmp_path / name
        if isinstance(rows, str):
            path.write_text(rows, encoding="utf-8")
        else:
            path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        short = {"max_query_length": 16} if task == "qa" else {}
        config = small_config(task=task, train=str(path), **short, **values)
        shown = io.StringIO()
        of_task, source = task_class(task).from_training(config, Console(io.StringIO()))
        review_rows(of_task, source, Console(shown), dialect=TableDialect.of(config))
        return shown.getvalue()

    return run


def rows_of(task):
    """Yield some rows that differ in their texts."""
    for number in range(6):
        row = {**ROWS[task], **(OTHERS.get(task, {}) if number % 2 else {})}
        first = next(iter(row))
        if isinstance(row[first], str):
            row[first] += f" {number}"
        yield row


@pytest.mark.parametrize(
    ("task", "line"),
    [
        ("classification", "  text: 'good film 0'  label: 'good'"),
        ("regression", "  text: 'good film 0'  label: 0.5"),
        ("multilabel", "  text: 'good film 0'  label: ['film', 'good']"),
        ("similarity", "  anchor: 'good film 0'  positive: 'a fine film'"),
        ("tagging", "  tokens: 'lima/B-LOC is/O red/O'"),
        ("qa", f"  question: 'what ? 0'  context: {CONTEXT!r}  answer: 'lima'"),
        ("multiple-choice", "  context: 'lima is 0'  choices: ['red', 'a city']  right: 'a city'"),
    ],
)
def test_first_rows_are_shown(review, task, line):
    first, second = review(task, rows_of(task)).splitlines()
    assert first == line
    assert second != line or task == "tagging"


def test_first_entities_are_shown_with_their_texts(review):
    row = {"text": "lima is red", "entities": [{"start": 0, "end": 4, "label": "LOC"}]}
    assert review("tagging", [row]) == "  text: 'lima is red'  entities: 'lima/LOC'\n"


@pytest.mark.parametrize("task", ["classification", "similarity", "multilabel"])
def test_columns_that_are_not_read_are_judged(review, task):
    rows = [{**row, "is_valid": bool(n % 2)} for n, row in enumerate(rows_of(task))]
    assert "all rows are used, for each value of 'is_valid' (false, true); split" in review(
        task, rows
    )


def test_second_texts_are_noticed(review):
    rows = [{"premise": "good", "hypothesis": f"bad {n}", "label": str(n % 2)} for n in range(6)]
    said = review("classification", rows, text_column="premise")
    assert "'premise' is read without 'hypothesis'; for pairs of texts give --text-pair-c" in said
    pair = {"text_column": "premise", "text_pair_column": "hypothesis"}
    assert "without" not in review("classification", rows, **pair)


def test_lists_among_labels_are_refused(review):
    rows = "text,label\n" + 'a film,"{""choices"": [""a"", ""b""]}"\na city,b\n' * 3
    with pytest.raises(InputError, match="3 of 6 labels are lists such as .* any number of labels"):
        review("classification", rows, "train.csv")


def test_numbers_are_no_words(review):
    rows = "1\tlima\tB-LOC\n2\tis\tO\n3\tred\tO\n\n" * 3
    with pytest.raises(UsageError, match="numbers that count .*--tokens-column 2"):
        review("tagging", rows, "train.conll")
    assert "tokens: " not in review("tagging", rows, "train.conll", tokens_column="2")


def test_offsets_in_utf16_units_are_refused(review):
    text = "🙂🙂 the capital is lima in peru ."
    spans = [(text.index(word), text.index(word) + 4) for word in ("lima", "peru")]

    def rows(shift):
        entities = [{"start": a + shift, "end": b + shift, "label": "LOC"} for a, b in spans]
        return [{"text": text, "entities": entities}] * 3

    assert "entities: 'lima/LOC peru/LOC'" in review("tagging", rows(0))
    with pytest.raises(InputError, match=r"6 of 6 entities after an emoji .* UTF-16 units"):
        review("tagging", rows(2))


def test_questions_that_are_cut_are_named_with_their_limit(config_of):
    config = config_of(task="qa", train="t.json", output="run", max_query_length=16)
    assert config.remedy_for_long_texts == "their questions are cut; raise --max-query-length 16"


@pytest.mark.parametrize("task", ROWS)
def test_rows_of_every_task_keep_their_ids(small_config, tmp_path, task):
    rows = [{"Ticket-ID": f"T-{n}", **row} for n, row in enumerate(rows_of(task))]
    path = tmp_path / "train.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    short = {"max_query_length": 16} if task == "qa" else {}

    def read(**values):
        config = small_config(task=task, train=str(path), **short, **values)
        return task_class(task).from_training(config, Console(io.StringIO()))

    _, source = read()
    assert source.place_columns == {"line": [*range(1, 7)], "id": [f"T-{n}" for n in range(6)]}
    _, source = read(id_column="none")
    assert source.place_columns == {"line": [*range(1, 7)]}
    with pytest.raises(UsageError, match=r"train.jsonl: no column 'Ticket-Id'; it has 'Ticket-ID"):
        read(id_column="Ticket-Id")


def test_ids_that_repeat_are_named_if_their_column_is(review):
    rows = [{"key": f"K-{n // 2}", **row} for n, row in enumerate(rows_of("classification"))]
    said = review("classification", rows, id_column="key")
    assert (
        "train.jsonl: 3 rows have the id of an earlier row in column 'key', the first 'K-0'" in said
    )
    assert "id" not in review("classification", rows)


def test_a_part_of_the_rows_is_said_to_be_one(small_config, tmp_path):
    path = tmp_path / "train.csv"
    path.write_text("text,label\n" + "a,x\n" * 3 + "b,y\n" * 3)

    def read(most):
        shown = io.StringIO()
        config = small_config(task="classification", train=str(path), max_train_rows=most)
        try:
            task_class("classification").from_training(config, Console(shown))
        except InputError as error:
            shown.write(str(error))
        return shown.getvalue()

    assert "train.csv: at most its first 3 rows are read (finetune.max_train_rows)" in read(3)
    assert "holds 'x' in every row" in read(3)
    assert "first" not in read(0)
